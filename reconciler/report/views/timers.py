"""Timers and their consequences: from constraints, orders, waiting moves and write conflicts."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.binding import Constraint, Tick
from reconciler.model.refs import Identity
from reconciler.report.views.shapes import Timer, TimerKind
from reconciler.report.views.sight import Sight
from reconciler.stages.moves import PATIENCE_S, is_waiting, timer_of
from reconciler.stages.observations import later
from reconciler.stages.ticks import ends_of_patience


def timers_of(sight: Sight, *, cluster: str | None = None, identity: Identity | None = None) -> tuple[Timer, ...]:
    """The timers that run, the next to end first. `cluster`, `identity`: only those that concern it."""
    wanted = sight.resource(cluster or "", identity) if identity is not None else None
    found = (timer for timer in _all(sight) if not sight.now or timer.ends > sight.now)
    chosen = [
        timer
        for timer in found
        if (cluster is None or timer.cluster == cluster)
        and (
            wanted is None
            or (timer.resource is not None
                and (timer.resource.kind, timer.resource.namespace, timer.resource.name)
                == (wanted.kind, wanted.namespace, wanted.name))
        )
    ]  # fmt: skip
    return tuple(sorted(chosen, key=lambda timer: (timer.ends, timer.what, timer.words)))


def _all(sight: Sight) -> Iterator[Timer]:
    for constraint in sight.noted.constraints or sight.observations.constraints:
        if constraint.until:
            yield _constrained(sight, constraint)
    yield from _failovers(sight)
    yield from _suspensions(sight)
    yield from _moves(sight)
    for (cluster, identity), fought in sight.facts.fights.items():
        yield _timer(sight, TimerKind.FIGHT, f"{identity} in {cluster} is set back again", fought.until, cluster,
                     identity)  # fmt: skip


def _timer(
    sight: Sight, what: TimerKind, words: str, ends: str, cluster: str | None = None, identity: Identity | None = None
) -> Timer:
    resource = sight.resource(cluster or "", identity) if identity is not None else None
    return Timer(what=what, words=sight.text(words), ends=ends, cluster=cluster, resource=resource)


def _constrained(sight: Sight, found: Constraint) -> Timer:
    if found.tick is Tick.EVICTION:
        what, words = TimerKind.EVICTION, f"{found.identity} may come back to {found.cluster}"
    elif found.excludes:
        what, words = TimerKind.EXCLUSION, f"{found.identity} may be placed in {found.cluster} again: {found.reason}"
    else:
        what = TimerKind.CAP
        words = f"{found.identity} may have more than {found.replicas_max} in {found.cluster} again: {found.reason}"
    return _timer(sight, what, words, found.until, found.cluster, found.identity)


def _failovers(sight: Sight) -> Iterator[Timer]:
    acts = sight.facts.decision.fleet.settings.failover_act
    for identity, cluster, ends in ends_of_patience(sight.facts.decision, sight.observations):
        what = "leaves" if acts else "would leave"
        yield _timer(sight, TimerKind.FAILOVER, f"{identity} {what} {cluster} unless it recovers", ends, cluster,
                     identity)  # fmt: skip


def _suspensions(sight: Sight) -> Iterator[Timer]:
    for found in sight.noted.suspensions:
        if found.until:
            cluster = found.scope.removeprefix("cluster ") if found.scope.startswith("cluster ") else None
            words = f"the suspension of {found.scope} by {found.who or 'a person'} ends"
            yield _timer(sight, TimerKind.SUSPENSION, words, found.until, cluster)


def _moves(sight: Sight) -> Iterator[Timer]:
    for change in filter(is_waiting, sight.picture.round.plan.changes):
        since = sight.noted.timers.get(timer_of(change.identity, change.cluster))
        if since:
            words = f"the move of {change.identity} out of {change.cluster} counts as stuck: it {change.held}"
            yield _timer(sight, TimerKind.MOVE, words, later(since, PATIENCE_S), change.cluster, change.identity)
