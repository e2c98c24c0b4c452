"""What differs from the round before, and what follows from it. Knows nothing of what is computed."""

from reconciler.stages.incremental.changed_keys import changed_keys
from reconciler.stages.incremental.patched import patched

__all__ = [
    "changed_keys",
    "patched",
]
