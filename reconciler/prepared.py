"""Types that answers and documents are decoded into."""

from __future__ import annotations

from typing import TypeVar

import msgspec

_Kind = TypeVar("_Kind")


def prepared(kind: type[_Kind]) -> type[_Kind]:
    """The type, of which msgspec knows everything from now on. A decorator for what several threads decode into.

    msgspec (0.22) finds out what it has to know of a type when it is first decoded into, and two threads that do so at
    once end the process: one of them reads what the other is still writing. A module is imported by one thread alone.
    """
    msgspec.json.Decoder(kind)
    return kind
