"""Values that have to be there."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


def present(value: _T | None) -> _T:
    assert value is not None
    return value
