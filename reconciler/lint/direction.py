"""The direction of a change of one field, by the comparison that its row names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.api.content import Json
from reconciler.api.plan import MISSING, Direction
from reconciler.documents import Field, parse_duration
from reconciler.lint.effects import Effect, Looser

Size = tuple[str, Any]
"""A unit, and a value of it: two sizes compare when their units are equal."""


def direction(effect: Effect, field: Field | None, before: Json, after: Json) -> Direction:
    """Return the direction; `before` and `after` are MISSING where the field is not written, and its default counts."""
    match effect.looser:
        case Looser.NEVER:
            return Direction.NEUTRAL
        case Looser.CONFIRMS:
            return Direction.NEUTRAL if after is MISSING else Direction.CONFIRMS
        case Looser.MORE | Looser.LESS:
            return _compared(effect, _size(effect, field, before), _size(effect, field, after))
        case _:
            is_same = bool(effect.order) and _size(effect, field, before) == _size(effect, field, after)
            return Direction.NEUTRAL if is_same else Direction.LOOSENS


def window_direction(item: Json, others: list[Json], *, is_new: bool) -> Direction:
    """Return the direction of a window that comes or goes. `others`: the windows of the other revision."""
    if isinstance(item, Mapping) and item.get("kind") == "deny":
        return Direction.TIGHTENS if is_new else Direction.LOOSENS
    has_allow = any(isinstance(other, Mapping) and other.get("kind") != "deny" for other in others)
    if is_new:
        return Direction.LOOSENS if has_allow else Direction.TIGHTENS
    return Direction.TIGHTENS if has_allow else Direction.LOOSENS


def _compared(effect: Effect, before: Size | None, after: Size | None) -> Direction:
    if before is None and effect.looser is Looser.MORE and after == ("order", 0):
        return Direction.TIGHTENS  # Whatever was there, nothing is stricter.
    if before is None or after is None or before[0] != after[0]:
        return Direction.LOOSENS
    if before[1] == after[1]:
        return Direction.NEUTRAL
    if before[0] == "entries":
        is_more, is_less = not after[1] <= before[1], not before[1] <= after[1]
    else:
        is_more, is_less = after[1] > before[1], after[1] < before[1]
    is_looser = is_more if effect.looser is Looser.MORE else is_less
    return Direction.LOOSENS if is_looser else Direction.TIGHTENS


def _size(effect: Effect, field: Field | None, value: Json) -> Size | None:
    if value is MISSING and field is not None and field.default:
        value = field.default
        if value in ("true", "false"):
            value = value == "true"
    if effect.order:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        text = field.values.get(text, text) if field is not None else text
        return ("order", effect.order.index(text)) if text in effect.order else None
    if value is MISSING:
        return (
            ("entries", frozenset()) if field is not None and field.type.startswith(("list", "map")) else ("there", 0)
        )
    return _measured(value)


def _measured(value: Json) -> Size | None:
    if isinstance(value, bool | int | float):
        return "number", float(value)
    if isinstance(value, list):
        return "entries", frozenset(map(str, value))
    if isinstance(value, Mapping):
        return "there", 1
    text = str(value)
    if text.removesuffix("%").isdigit():
        return ("percent" if text.endswith("%") else "number"), float(text.removesuffix("%"))
    seconds = parse_duration(text)
    return ("seconds", seconds) if seconds is not None else None
