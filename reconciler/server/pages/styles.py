"""Styles of states: a sign, a colour and words, never the colour alone. The words are those of `status`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from reconciler.api.ledger import EventKind
from reconciler.report.views.view_shapes import AlertKind, Weight


class StateStyle(NamedTuple):
    """`tone` is a class of the style: ok, prog, warn, bad or unk."""

    sign: str
    tone: str
    words: str


STATES: Final = {
    "synced": StateStyle("✓", "ok", "in sync"),
    "pending": StateStyle("↻", "prog", "about to be changed"),
    "held": StateStyle("‖", "warn", "held"),
    "fought": StateStyle("⇄", "warn", "fought over"),
    "frozen": StateStyle("❄", "warn", "frozen by a broken file"),
    "refused": StateStyle("⊘", "bad", "refused, an object that is not ours is in the way"),
    "failed": StateStyle("✗", "bad", "failed"),
    "unknown": StateStyle("?", "unk", "not known"),
    "left": StateStyle("◌", "unk", "left, its cluster has no document any more"),
}
HEALTHS: Final = {
    "Healthy": StateStyle("✓", "ok", "healthy"),
    "Progressing": StateStyle("…", "prog", "progressing"),
    "Degraded": StateStyle("!", "bad", "degraded"),
    "Missing": StateStyle("∅", "bad", "missing"),
    "Unknown": StateStyle("?", "unk", "health not known"),
}
LEGEND: Final = (
    ("3", "ok", "in sync and healthy, 3 replicas"),
    ("2/3", "prog", "progressing, 2 of 3 ready"),
    ("2/3 !", "bad", "degraded"),
    ("∅", "bad", "missing"),
    ("↻", "prog", "about to be changed"),
    ("‖", "warn", "held"),
    ("⇄", "warn", "fought over"),
    ("❄", "warn", "frozen"),
    ("⊘", "bad", "refused"),
    ("✗", "bad", "failed"),
    ("?", "unk", "not known"),
    ("◌", "unk", "cluster left"),
    ("·", "no", "not placed"),
)
STAGES: Final = {
    "done": StateStyle("✓", "ok", "done"),
    "running": StateStyle("…", "prog", "in progress"),
    "waits-for-stage": StateStyle("·", "no", "waits for a stage"),
    "waits-for-time": StateStyle("…", "prog", "waits"),
    "waits-for-approval": StateStyle("‖", "warn", "needs an approval"),
    "waits-for-window": StateStyle("‖", "warn", "waits for its window"),
    "paused": StateStyle("✗", "bad", "paused"),
    "pinned": StateStyle("!", "warn", "pinned"),
    "skipped": StateStyle("·", "no", "no cluster"),
    "unclear": StateStyle("?", "bad", "unclear"),
}
PHASES: Final = {
    "done": StateStyle("✓", "ok", "done"),
    "running": StateStyle("…", "prog", "in progress"),
    "behind": StateStyle("·", "no", "behind"),
    "failed": StateStyle("✗", "bad", "failed"),
    "pinned": StateStyle("!", "warn", "pinned"),
    "frozen": StateStyle("‖", "bad", "frozen"),
}
NEEDS: Final = {
    AlertKind.SOURCE: "store",
    AlertKind.AWAY: "cluster away",
    AlertKind.FOUGHT: "fought over",
    AlertKind.LEFT: "cluster left",
}
WEIGHTS: Final = {Weight.ERROR: "bad", Weight.WARNING: "warn", Weight.INFO: "unk"}
EVENTS: Final[Mapping[str, str]] = {
    EventKind.ADVANCED: "new revision",
    EventKind.IN_STEP: "all in sync",
    EventKind.SOURCE_FAILED: "store unreadable",
    EventKind.SOURCE_RECOVERED: "store readable",
    EventKind.STORE_BROKEN: "store has errors",
    EventKind.STORE_MENDED: "store has no errors",
    EventKind.PLACED: "rescheduled",
    EventKind.CONSTRAINED: "cluster excluded",
    EventKind.FREED: "exclusion ended",
    EventKind.FAILED: "apply failed",
    EventKind.DRIFT: "drift",
    EventKind.FIGHT_DETECTED: "conflict",
    EventKind.FIGHT_OVER: "conflict ended",
    EventKind.OBJECT_REFUSED: "ownership conflict",
    EventKind.WAY_IS_FREE: "ownership conflict ended",
    EventKind.HOLD_OVER: "hold ended",
    EventKind.FREEZE_OVER: "freeze ended",
    EventKind.CLUSTER_AWAY: "cluster unreachable",
    EventKind.CLUSTER_BACK: "cluster reachable",
    EventKind.CLUSTER_WENT_BACK: "cluster restored",
    EventKind.KIND_UNREAD: "kind unreadable",
    EventKind.KIND_READ: "kind readable",
    EventKind.JOURNAL_FULL: "journal full",
    EventKind.JOURNAL_HAS_ROOM: "journal has room",
    EventKind.READMITTED: "eviction ended",
    EventKind.ROLLOUT_BEGUN: "rollout started",
    EventKind.ROLLOUT_COMPLETED: "cluster rolled out",
    EventKind.ROLLOUT_DONE: "rollout completed",
    EventKind.ROLLOUT_PAUSED: "rollout paused",
    EventKind.PAUSE_OVER: "rollout resumed",
    EventKind.APPROVAL_AWAITED: "waiting for approval",
    EventKind.APPROVAL_OVER: "no longer waiting for approval",
    EventKind.ASKED: "sync requested",
    EventKind.APPLY: "manual apply",
    EventKind.REBUILT: "journal rebuilt",
    EventKind.TAKEN_OVER: "fleet taken over",
}
"""The field's words for the events of history; the word of any other kind is its own."""
_NEW: Final = StateStyle("?", "unk", "")
_WIDEST: Final = 5
"""Characters of a cell: beyond, only the sign is shown and the count is in the words."""


def style_of(looks: Mapping[str, StateStyle], word: str) -> StateStyle:
    """Return the style of a word; one of a later version looks as an unknown one."""
    return looks.get(word) or _NEW._replace(words=word)


@lru_cache(maxsize=4096)
def copy_look(state: str, health: str, replicas: int | None, ready: int | None, counted: str = "ready") -> StateStyle:
    """Return the style of one copy: the worse of sync and health first.

    >>> copy_look("synced", "Degraded", 3, 2)
    StateStyle(sign='2/3 !', tone='bad', words='degraded, 2 of 3 ready, in sync')
    >>> copy_look("held", "Healthy", 3, 3)
    StateStyle(sign='‖', tone='warn', words='held, healthy, 3 of 3 ready')
    """
    sync, fares, count = style_of(STATES, state), style_of(HEALTHS, health), count_words(replicas, ready, counted)
    parts = [count] if count else []
    if state in ("unknown", "left"):
        return StateStyle(sync.sign, sync.tone, sync.words)
    if state == "synced" and health != "Healthy":
        short, sign = _short_count(replicas, ready), fares.sign
        if short and sign != "∅":
            # A count with a slash shows progress without a sign.
            short = short if fares.tone == "prog" and "/" in short else f"{short} {sign}"
            sign = short if len(short) <= _WIDEST else sign
        return StateStyle(sign, fares.tone, ", ".join([fares.words, *parts, sync.words]))
    if state == "synced":
        short = _short_count(replicas, ready) or sync.sign
        return StateStyle(
            short if len(short) <= _WIDEST else sync.sign, "ok", ", ".join([sync.words, fares.words, *parts])
        )
    is_bad = fares.tone == "bad"
    sign = f"{sync.sign} !" if is_bad else sync.sign
    return StateStyle(sign, "bad" if is_bad else sync.tone, ", ".join([sync.words, fares.words, *parts]))


def count_words(replicas: int | None, ready: int | None, counted: str = "ready") -> str:
    """Return `2 of 3 ready`; empty without replicas."""
    if replicas is None:
        return ""
    return f"{replicas} replicas" if ready is None else f"{ready} of {replicas} {counted}"


def _short_count(replicas: int | None, ready: int | None) -> str:
    if replicas is None:
        return ""
    return str(replicas) if ready is None or ready == replicas else f"{ready}/{replicas}"
