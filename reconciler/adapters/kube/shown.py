"""The repr of values that hold secrets."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


def shown_without(value: Struct, hidden: Collection[str]) -> str:
    """The value as `repr` gives it, without the hidden fields."""
    fields = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in fields)})"
