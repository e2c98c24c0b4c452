"""The boundary of one store: a fault of ours is one more reason why it cannot be read, and the last reading stays.

Source: design#boundaries; design#last-good-revision.
"""

from __future__ import annotations

from reconciler.containment import INTERNAL_ERROR
from reconciler.errors import StoreFault


def store_fault(name: str, fault: Exception) -> StoreFault:
    """The fault as an error of the store. The text of the exception is left out: it may quote a value of the store."""
    found = StoreFault(f"{name}: {INTERNAL_ERROR}: it cannot be read: {type(fault).__name__}; please report it")
    found.__cause__ = fault
    return found
