"""Moves that make no progress: since when each waits, and which are to be reported.

Source: design#move-stalled: without progress for 10 minutes it is reported, and the old copy stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.model.plan import Cause, Change
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity
from reconciler.stages.documents import ProblemCode as Code
from reconciler.stages.observations import age_s

PATIENCE_S = 600.0
"""So long a move may wait before it is reported."""

MOVE_STALLED = "move-stalled"
MOVE_CODES: Mapping[str, Code] = {
    MOVE_STALLED: Code(
        "A move has waited for ten minutes for the new copy. Nothing is taken away.",
        "See why the new copy is not ready (`reconciler get`, `kubectl describe`), or revert the edit.",
    ),
}

_TIMER = "move "


def is_waiting(change: Change) -> bool:
    """Return whether a change waits for copies that are to take over."""
    return change.cause is Cause.PLACEMENT and change.held is not None and change.held.startswith("waits for ")


def timer_of(identity: Identity, cluster: str) -> str:
    """The timer that says since when a copy waits to leave a cluster, or to shrink there."""
    return f"{_TIMER}{identity} @ {cluster}"


def is_timer(key: str) -> bool:
    """Return whether a timer is one of moves."""
    return key.startswith(_TIMER)


def waiting_times(
    changes: Iterable[Change], timers: Mapping[str, str], now: str, only: Collection[Identity] | None
) -> dict[str, str]:
    """Return all timers from now on: name to RFC 3339. `only`: the evaluated objects; None: all."""
    waiting = {timer_of(change.identity, change.cluster) for change in changes if is_waiting(change)}
    looked = None if only is None else {f"{_TIMER}{identity} @" for identity in only}
    kept = {
        key: since
        for key, since in timers.items()
        if not is_timer(key) or key in waiting or (looked is not None and f"{key.rpartition(' @ ')[0]} @" not in looked)
    }
    return dict(sorted({**dict.fromkeys(waiting, now), **kept}.items()))


def stalled(changes: Iterable[Change], timers: Mapping[str, str], now: str) -> Iterator[Problem]:
    """A warning for every move that has waited for too long."""
    for change in changes:
        since = timers.get(timer_of(change.identity, change.cluster))
        if since is not None and is_waiting(change) and age_s(since, now) >= PATIENCE_S:
            yield Problem(
                source=change.source,
                code=MOVE_STALLED,
                message=f"{change.identity} stays as it is since {since}: it {change.held}",
                severity=Severity.WARNING,
                cluster=change.cluster,
            )
