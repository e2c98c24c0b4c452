"""Write conflicts: another actor keeps undoing our field; after a few times we back off and report it once.

The actor is a field manager, or the cluster itself (an admission webhook). The time between two undos does not matter.
Counts from before a start are read from history. Source: design#fights: a fight backs off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import Final

from msgspec import Struct, field

from reconciler.api.ledger import DriftOutcome, Event, EventKind
from reconciler.api.plan import Cause, Change
from reconciler.api.refs import Copy, Identity
from reconciler.controller import timing
from reconciler.observations import age_s, later
from reconciler.state import THE_SERVER, Fought

UNDONE_MAX = 5
"""So many times within `timing.UNDONE_COUNTED_S`, and undoing a field is a fight over it."""
EVENTS_WITH_UNDONE: Final = (EventKind.DRIFT, EventKind.FAILED, EventKind.FIGHT_DETECTED, EventKind.FIGHT_OVER)
"""The events of history with undone fields."""
THE_OBJECT = ""
"""The field of an object that somebody deletes."""

Undone = Mapping[str, tuple[str, ...]]
"""By path of a field who undid it, if that is known."""


class _Field(Struct):
    """One field of one copy. `bouts`: how often it was left alone, 0: there is no fight; `until_s`: until when."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=UNDONE_MAX))
    managers: tuple[str, ...] = ()
    bouts: int = 0
    until_s: float = -inf
    is_altered: bool = False
    """The server altered it in the last write: setting it right is not counted again."""
    is_left: bool = False
    """It was not as the store wants it since it was written last, and was left alone."""

    def is_over(self, now_s: float) -> bool:
        """Return whether nobody undoes it any more."""
        apart_s = (self.times[-1] - self.times[0]) / max(1, len(self.times) - 1) if self.times else 0.0
        return now_s >= max((self.until_s, *self.times)) + max(timing.QUIET_S, 2 * apart_s)

    def is_fought(self, now_s: float) -> bool:
        """Return whether it is left alone now, and is not as wanted, or was undone a moment ago."""
        is_new = max(self.times, default=-inf) > now_s - timing.SETTLING_S
        return self.until_s > now_s and (self.is_left or self.is_altered or is_new)

    def undone(self, now_s: float) -> bool:
        """Count once more; whether that begins a fight."""
        if self.bouts and self.is_over(now_s):
            self.times.clear()
            self.bouts = 0
        was_fought = self.bouts > 0
        self.times.append(now_s)
        if was_fought or (len(self.times) == UNDONE_MAX and self.times[0] > now_s - timing.UNDONE_COUNTED_S):
            self.left_alone_from(now_s)
        return self.bouts > 0 and not was_fought

    def left_alone_from(self, now_s: float) -> None:
        """Leave it alone for a while, each time for longer."""
        self.bouts += 1
        self.until_s, self.is_left = now_s + timing.FIGHT_BACK_OFF.pause_s(self.bouts), False

    def end_pause(self, now_s: float) -> None:
        """Leave it alone no longer; undone once more, it is left alone for longer than before."""
        self.until_s, self.is_left = min(self.until_s, now_s), False


class WriteConflicts:
    """Undone fields, by copy and field. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._fields: dict[Copy, dict[str, _Field]] = {}
        self._remembered: dict[str, dict[str, _Field]] = {}
        """History of copies that were not asked for since, by its subjects."""

    def undone(self, cluster: str, identity: Identity, undone: Undone, now_s: float) -> bool:
        """Count undone fields of a copy; return True when that begins a conflict with back-off."""
        fields = self._fields[cluster, identity] = self._of(cluster, identity)
        return _count(fields, undone, now_s)

    def end_altered(self, cluster: str, identity: Identity, paths: Collection[str], now_s: float) -> frozenset[str]:
        """Handle an unaltered write: return the fields that the server had altered until then; end their back-off."""
        fields = self._of(cluster, identity)
        altered = frozenset(path for path in paths if path in fields and fields[path].is_altered)
        for path in altered:
            fields[path].is_altered = False
            fields[path].end_pause(now_s)
        return altered

    def compared(self, copy: Copy, differing: Collection[str], now_s: float) -> None:
        """End the back-off of fields that are as the store wants them now. `differing`: those that are not."""
        for path, one in self._of(*copy).items():
            if any(_overlaps(path, other) for other in differing):
                one.is_left = True
            elif one.is_left or one.is_altered:
                one.is_altered = False
                one.end_pause(now_s)

    def remember(self, events: Iterable[Event], now: str, now_s: float) -> None:
        """Continue from history, oldest first (`EVENTS_WITH_UNDONE`): undone fields, and unfinished conflicts."""
        for event in events:
            at_s, fields = now_s - age_s(event.time, now), self._remembered.setdefault(event.subject, {})
            data = event.data
            who = tuple(str(data["who"]).split(", ")) if data.get("who") else ()
            match EventKind(event.kind):
                case EventKind.DRIFT if data.get("outcome") == DriftOutcome.HEALED and who == (THE_SERVER,):
                    # It was counted when the server changed it.
                    for path in fields.keys() & data["fields"]:
                        fields[path].is_altered = False
                case EventKind.DRIFT if data.get("outcome") == DriftOutcome.HEALED:
                    _count(fields, dict.fromkeys(data.get("fields") or (THE_OBJECT,), who), at_s)
                case EventKind.FAILED if data.get("altered"):
                    _count(fields, dict.fromkeys(data["altered"], (THE_SERVER,)), at_s)
                case EventKind.FIGHT_DETECTED:
                    for path in data.get("fields") or (THE_OBJECT,):
                        one = fields.setdefault(path, _Field(managers=who))
                        if not one.bouts:
                            one.left_alone_from(at_s)
                case EventKind.FIGHT_OVER:
                    fields.clear()
                case _:
                    pass

    def current(self, now_s: float, now: str) -> dict[Copy, Fought]:
        """Return the copies with a field in back-off that differs, or was undone just now. `now`: as RFC 3339."""
        fought: dict[Copy, Fought] = {}
        for copy, fields in self._fields.items():
            paused = {path: one for path, one in fields.items() if one.is_fought(now_s)}
            if paused:
                managers = sorted({name for one in paused.values() for name in one.managers})
                until = later(now, max(one.until_s for one in paused.values()) - now_s)
                fought[copy] = Fought(tuple(managers), until, tuple(sorted(filter(None, paused))))
        return fought

    def paused(self, now_s: float) -> tuple[Copy, ...]:
        """Return the copies with a field in back-off."""
        return tuple(copy for copy, each in self._fields.items() if any(one.until_s > now_s for one in each.values()))

    def pause_left_s(self, cluster: str, identity: Identity, now_s: float) -> float:
        """Return the remaining back-off of the copy's fields; 0 without a conflict."""
        fields = self._of(cluster, identity).values()
        return max((one.until_s - now_s for one in fields if one.until_s > now_s), default=0.0)

    def leaves_alone(self, change: Change, now_s: float) -> bool:
        """Return whether it sets right (also a mark that was stripped) fields in back-off only."""
        differing = tuple(field.path for field in change.fields) or (THE_OBJECT,)
        self.compared(change.copy, differing, now_s)
        paused = [path for path, one in self._of(*change.copy).items() if one.until_s > now_s]
        is_paused = all(any(_overlaps(path, other) for other in paused) for path in differing)
        return is_paused and change.cause in (Cause.DRIFT, Cause.ADOPTION)

    def ongoing(self, now_s: float) -> frozenset[str]:
        """The copies whose fight is not over, as subjects of history."""
        every = {f"{identity} @ {cluster}": fields for (cluster, identity), fields in self._fields.items()}
        return frozenset(
            subject
            for subject, fields in (self._remembered | every).items()
            if any(one.bouts and not one.is_over(now_s) for one in fields.values())
        )

    def _of(self, cluster: str, identity: Identity) -> dict[str, _Field]:
        copy = (cluster, identity)
        if copy not in self._fields:
            remembered = self._remembered.pop(f"{identity} @ {cluster}", None)
            if remembered is None:
                return {}
            self._fields[copy] = remembered
        return self._fields[copy]


def _overlaps(path: str, other: str) -> bool:
    """Return whether one is the other, or a part of it: annotations that a webhook strips, and one that is missing."""
    return path == other or path.startswith((f"{other}.", f"{other}[")) or other.startswith((f"{path}.", f"{path}["))


def _count(fields: dict[str, _Field], undone: Undone, now_s: float) -> bool:
    begun = False
    for path, managers in undone.items():
        one = fields.setdefault(path, _Field())
        one.managers = managers or one.managers
        one.is_altered = managers == (THE_SERVER,)
        begun |= one.undone(now_s)
    return begun
