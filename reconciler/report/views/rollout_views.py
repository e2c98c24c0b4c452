"""Rollouts and timers as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.binding import Constraint, Tick
from reconciler.api.ledger import EventKind
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Paused, Pinned, RolloutProgress, StageProgress, WaitsForApproval
from reconciler.observations import PATIENCE_S, is_waiting, later, timer_of
from reconciler.report.plan.stages import short, state_word, state_words
from reconciler.report.status.remedies import todo_of
from reconciler.report.views.view_inputs import ViewModel
from reconciler.report.views.view_shapes import (
    Alert,
    AlertKind,
    InForcePart,
    RolloutPart,
    StagePart,
    Timer,
    TimerKind,
    Weight,
)
from reconciler.scheduler import ends_of_patience


def rollouts_of(sight: ViewModel) -> tuple[RolloutPart, ...]:
    """Return the state of each Rollout, by name."""
    return tuple(
        RolloutPart(
            name=found.rollout,
            release=found.release,
            waiting=found.waiting or None,
            is_done=found.is_done,
            stages=tuple(_stage(found, stage) for stage in found.stages),
        )
        for found in sorted(sight.picture.rollouts, key=lambda one: one.rollout)
    )


def _stage(found: RolloutProgress, stage: StageProgress) -> StagePart:
    there = sum(found.clusters[name].revision == found.release for name in stage.clusters if name in found.clusters)
    return StagePart(
        name=stage.name,
        state=state_word(stage.state),
        why=state_words(stage),
        clusters=stage.clusters,
        there=there,
        approval=stage.state.entry if isinstance(stage.state, WaitsForApproval) else None,
    )


def in_force_in(sight: ViewModel, cluster: str) -> tuple[InForcePart, ...]:
    """Return for each Rollout the active revision in a cluster, and why."""
    return tuple(
        InForcePart(
            rollout=found.rollout,
            stage=one.stage or None,
            revision=one.revision or None,
            phase=str(one.phase),
            why=sight.text(one.why),
        )
        for found in sorted(sight.picture.rollouts, key=lambda one: one.rollout)
        if (one := found.clusters.get(cluster)) is not None
    )


def rollout_needs(sight: ViewModel, cluster: str | None) -> Iterator[Alert]:
    """Stages that are paused, pinned, or wait for an approval. `cluster`: only those that have it."""
    for found in sight.picture.rollouts:
        for stage in found.stages:
            if cluster is None or cluster in stage.clusters:
                yield from _need(sight, found, stage)


def _need(sight: ViewModel, found: RolloutProgress, stage: StageProgress) -> Iterator[Alert]:
    count, subject, data = 1, f"rollout {found.rollout}/{stage.name}", {"revision": found.release}
    match stage.state:
        case Paused(failed=failed):
            whys = sorted({f"{name}: {found.clusters[name].why}" for name in failed if name in found.clusters})
            kind, count = EventKind.ROLLOUT_PAUSED, max(1, len(failed))
            title = f"the rollout {found.rollout} is paused in the stage {stage.name}"
            why = sight.text("; ".join(whys[:3]))
        case WaitsForApproval(entry=entry, ended=ended):
            kind = EventKind.APPROVAL_AWAITED
            title = f"the rollout {found.rollout} needs an approval of the stage {stage.name}"
            why = f"{short(found.release)} is done there" + (f"; its approval ended at {ended}" if ended else "")
            data["entry"] = entry
        case Pinned(revision=revision):
            kind = EventKind.PINNED
            title = f"the stage {stage.name} of the rollout {found.rollout} is pinned to {short(revision)}"
            why = f"{short(found.release)} does not reach it"
        case _:
            return
    yield Alert(
        weight=Weight.ERROR if isinstance(stage.state, Paused) else Weight.WARNING,
        what=AlertKind.ROLLOUT,
        title=title,
        why=why,
        count=count,
        since=sight.noted.since(kind, subject),
        who=sight.author(found.release),
        revision=found.release,
        todo=todo_of(kind, subject, data),
    )


def timers_of(sight: ViewModel, *, cluster: str | None = None, identity: Identity | None = None) -> tuple[Timer, ...]:
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


def _all(sight: ViewModel) -> Iterator[Timer]:
    for constraint in sight.constraints:
        if constraint.until:
            yield _constrained(sight, constraint)
    yield from _failovers(sight)
    yield from _suspensions(sight)
    for change in filter(is_waiting, sight.picture.round.plan.changes):
        since = sight.noted.timers.get(timer_of(change.identity, change.cluster))
        if since:
            words = f"the move of {change.identity} out of {change.cluster} counts as stuck: it {change.held}"
            yield _timer(sight, TimerKind.MOVE, words, later(since, PATIENCE_S), change.cluster, change.identity)
    for (cluster, identity), fought in sight.facts.fights.items():
        yield _timer(sight, TimerKind.FIGHT, f"{identity} in {cluster} is set back again", fought.until, cluster,
                     identity)  # fmt: skip


def _timer(
    sight: ViewModel,
    what: TimerKind,
    words: str,
    ends: str,
    cluster: str | None = None,
    identity: Identity | None = None,
) -> Timer:
    resource = sight.resource(cluster or "", identity) if identity is not None else None
    return Timer(what=what, words=sight.text(words), ends=ends, cluster=cluster, resource=resource)


def _constrained(sight: ViewModel, found: Constraint) -> Timer:
    if found.tick is Tick.EVICTION:
        what, words = TimerKind.EVICTION, f"{found.identity} may come back to {found.cluster}"
    elif found.excludes:
        what, words = TimerKind.EXCLUSION, f"{found.identity} may be placed in {found.cluster} again: {found.reason}"
    else:
        what = TimerKind.CAP
        words = f"{found.identity} may have more than {found.replicas_max} in {found.cluster} again: {found.reason}"
    return _timer(sight, what, words, found.until, found.cluster, found.identity)


def _failovers(sight: ViewModel) -> Iterator[Timer]:
    acts = sight.facts.schedule.fleet.settings.failover_act
    for identity, cluster, ends in ends_of_patience(sight.facts.schedule, sight.observations):
        what = "leaves" if acts else "would leave"
        yield _timer(sight, TimerKind.FAILOVER, f"{identity} {what} {cluster} unless it recovers", ends, cluster,
                     identity)  # fmt: skip


def _suspensions(sight: ViewModel) -> Iterator[Timer]:
    for found in sight.noted.suspensions:
        if found.until:
            cluster = found.scope.removeprefix("cluster ") if found.scope.startswith("cluster ") else None
            words = f"the suspension of {found.scope} by {found.who or 'a person'} ends"
            yield _timer(sight, TimerKind.SUSPENSION, words, found.until, cluster)
