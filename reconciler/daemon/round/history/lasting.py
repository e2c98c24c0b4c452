"""What lasts for objects, kept up from what turned: a hold that a person has to end, a degraded health.

An object that turns again and again is told as degraded, and not as well in between.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from reconciler.stages.observations import age_s
from reconciler.stages.state import Copy, Degraded, Held, HeldBy, Progressing, Turn, UnknownHealth

FLAPS_MAX: Final = 3
"""So often within the window it is told that an object is degraded, and that it is well again."""
FLAPS_WINDOW_S: Final = 600.0
_OBJECTS_MAX: Final = 20
"""So many objects of a hold are named; `status` and `diff` list all."""
_FOR_A_PERSON: Final = frozenset({HeldBy.GUARD, HeldBy.REPLACEMENT})
"""A suspension is told by itself."""

State = TypeVar("State")


class Lasting(Generic[State]):
    """The copies of which something is so. `state_of`: what, after a turn and what was so before; None: it is not."""

    def __init__(self, state_of: Callable[[Turn, State | None], State | None]) -> None:
        """Nothing has turned yet; the first update of the state turns all that is not nominal."""
        self._state_of = state_of
        self._found: dict[Copy, State] = {}
        self.is_changed = False
        """Whether the last turns changed anything of it."""

    def take_in(self, turns: Iterable[Turn]) -> None:
        """Follow what turned."""
        self.is_changed = False
        for turn in turns:
            copy = (turn.cluster, turn.identity)
            found = self._state_of(turn, known := self._found.get(copy))
            self.is_changed |= found is not known
            if found is not None:
                self._found[copy] = found
            else:
                self._found.pop(copy, None)

    def items(self) -> ItemsView[Copy, State]:
        """All of it by copy."""
        return self._found.items()


def held_now(turn: Turn, _: Held | None) -> Held | None:
    """The hold of an object that waits until a person confirms or allows it."""
    found = turn.after.sync if turn.after is not None else None
    return found if isinstance(found, Held) and found.by in _FOR_A_PERSON else None


def degraded_now(turn: Turn, before: Degraded | None) -> Degraded | None:
    """The health of an object that is degraded. What makes progress since, or is unknown, has not recovered yet."""
    found = turn.after.health if turn.after is not None else None
    if isinstance(found, Degraded):
        return found
    return before if isinstance(found, Progressing | UnknownHealth) else None


def holds_by_cluster(held: Lasting[Held]) -> Mapping[str, Mapping[str, Any]]:
    """What is held in each cluster, as history has it: by what, how many objects, the first of them, and why."""
    by_cluster: dict[str, list[tuple[str, Held]]] = {}
    for (cluster, identity), found in held.items():
        by_cluster.setdefault(cluster, []).append((str(identity), found))
    return {f"cluster {name}": _hold(sorted(found, key=lambda one: one[0])) for name, found in by_cluster.items()}


def _hold(found: Sequence[tuple[str, Held]]) -> dict[str, Any]:
    return {
        "why": found[0][1].why,
        "by": ", ".join(sorted({str(one.by) for _, one in found})),
        "held": len(found),
        "objects": [name for name, _ in found[:_OBJECTS_MAX]],
    }


class Flaps:
    """When objects began to be degraded lately, by subject. Times: RFC 3339."""

    def __init__(self) -> None:
        """Nothing has begun."""
        self._begun: dict[str, list[str]] = {}

    def began(self, subjects: Iterable[str], now: str) -> None:
        """These began to be degraded."""
        for subject in subjects:
            self._begun.setdefault(subject, []).append(now)

    def goes_on(self, now: str) -> frozenset[str]:
        """The subjects that came and went too often: they are not told to be well until the window is over."""
        for subject, times in list(self._begun.items()):
            kept = [time for time in times if age_s(time, now) < FLAPS_WINDOW_S]
            if kept:
                self._begun[subject] = kept
            else:
                del self._begun[subject]
        return frozenset(subject for subject, times in self._begun.items() if len(times) >= FLAPS_MAX)
