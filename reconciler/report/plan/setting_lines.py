"""Settings that change, in lines that the terminal, the pull request, the page and annotations share, and as JSON.

`! loosens   HELD  Fleet shop  fleet.yaml:9`, then the field with both values, then what it means for clusters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from reconciler.api.content import Json
from reconciler.api.plan import Direction, Plan, SettingChange
from reconciler.report.difference import shown_pair
from reconciler.report.json_parts import values_part
from reconciler.report.safe import visible
from reconciler.report.shown_values import PLAIN, Style

SETTINGS: Final = "Settings that change"
_MARKS: Final = {
    Direction.LOOSENS: "! loosens ",
    Direction.CONFIRMS: "? confirms",
    Direction.TIGHTENS: "+ tightens",
    Direction.NEUTRAL: "~ changes ",
    Direction.PROMOTES: "> promotes",
}
_VALUE_CHARS_MAX: Final = 120
_SUBJECT_CHARS_MAX: Final = 300


def setting_lines(change: SettingChange, style: Style = PLAIN, *, value_chars_max: int = _VALUE_CHARS_MAX) -> list[str]:
    """Return the lines about a redacted change."""
    mark = _MARKS[change.direction]
    words = [_subject(text) for text in (change.document, str(change.source))]
    head = "  ".join([mark, *(["HELD"] if change.held else []), *words])
    lines = [style.red(head) if change.direction is Direction.LOOSENS else head]
    if change.path:
        values = shown_pair(change.before, change.after, value_chars_max)
        lines.append(f"      {_subject(change.path)}  {f' {style.arrow} '.join(values)}")
    return [*lines, f"      {visible(change.meaning)}"]


def _subject(text: str) -> str:
    """Return a name that hides no other setting by its length: in the middle of a long one stands its digest."""
    shown = visible(text)
    if len(shown) <= _SUBJECT_CHARS_MAX:
        return shown
    half = _SUBJECT_CHARS_MAX // 2
    return f"{shown[:half]}…{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}…{shown[-half:]}"


def review_lines(digest: str, style: Style = PLAIN) -> list[str]:
    """Return the instruction to confirm loosened settings; empty if none is held."""
    if not digest:
        return []
    return [
        "To let the settings that are held pass, set in the document of kind Fleet: "
        f"{style.bold(f'spec.review.confirm: {visible(digest)}')}"
    ]


def settings_part(plan: Plan) -> dict[str, Json]:
    """Return `{settings: [...], settingsDigest}` of a redacted plan; empty where none changes."""
    if not plan.settings:
        return {}
    return {"settings": [_setting(change) for change in plan.settings], "settingsDigest": plan.settings_digest or None}


def _setting(change: SettingChange) -> dict[str, Json]:
    return {
        "document": change.document,
        "source": str(change.source),
        **values_part(change.path, change.before, change.after),
        "direction": str(change.direction),
        "meaning": change.meaning,
        "held": change.held,
    }


def loosened(settings: Sequence[SettingChange]) -> tuple[int, int]:
    """Return the number of settings that loosen, and of those that are held."""
    return sum(one.direction is Direction.LOOSENS for one in settings), sum(one.held for one in settings)
