"""Types that answers and documents are decoded into."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_Kind = TypeVar("_Kind")


def prepared(kind: type[_Kind]) -> type[_Kind]:
    """Return the type, prepared for msgspec. A decorator for types that several threads decode into.

    msgspec (0.22) inspects a type when it is first decoded into, and two threads that do so at once end the process:
    one of them reads while the other is still writing. A module is imported by one thread alone.
    """
    msgspec.json.Decoder(kind)
    return kind
