"""Altered writes in words: each field with its live and its sent value.

Source: design#altered-writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reconciler.model.plan import MISSING, FieldChange
from reconciler.model.tree import Json, canonical_bytes

_FIELDS_MAX: Final = 5
_VALUE_MAX: Final = 60


def altered_text(fields: Sequence[FieldChange]) -> str:
    """The fields that a cluster made something else of, in words. `fields`: as they may be shown."""
    told = [
        f"{field.path} was dropped"
        if field.before is MISSING
        else f"{field.path} is {_value(field.before)}, not {_value(field.after)}"
        for field in fields
    ]
    more = f", and {len(told) - _FIELDS_MAX} more" if len(told) > _FIELDS_MAX else ""
    dropped = " or a schema without the field" if any(field.before is MISSING for field in fields) else ""
    return (
        f"the cluster changed what was written (an admission webhook{dropped}?): {', '.join(told[:_FIELDS_MAX])}{more}"
    )


def _value(value: Json) -> str:
    text = canonical_bytes(value).decode(errors="replace") if value is not MISSING else "there"
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 1]}…"
