"""Rollouts and timers as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.binding import Tick
from reconciler.api.ledger import EventKind
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import StageKind
from reconciler.observations import PATIENCE_S, is_waiting, later, timer_of
from reconciler.report.plan.stages import short, state_words
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


def rollouts_of(model: ViewModel) -> tuple[RolloutPart, ...]:
    """Return the state of each Rollout, by name."""
    return tuple(
        RolloutPart(
            name=rollout.rollout,
            release=rollout.release,
            waiting=rollout.waiting or None,
            is_done=rollout.is_done,
            stages=tuple(
                StagePart(
                    name=stage.name,
                    state=str(stage.state.kind),
                    why=state_words(stage.state),
                    clusters=stage.clusters,
                    there=sum(
                        rollout.clusters[name].revision == rollout.release
                        for name in stage.clusters
                        if name in rollout.clusters
                    ),
                    approval=stage.state.entry or None,
                )
                for stage in rollout.stages
            ),
        )
        for rollout in sorted(model.picture.rollouts, key=lambda one: one.rollout)
    )


def in_force_in(model: ViewModel, cluster: str) -> tuple[InForcePart, ...]:
    """Return for each Rollout the active revision in a cluster, and why."""
    return tuple(
        InForcePart(
            rollout=rollout.rollout,
            stage=one.stage or None,
            revision=one.revision or None,
            phase=str(one.phase),
            why=model.text(one.why),
        )
        for rollout in sorted(model.picture.rollouts, key=lambda one: one.rollout)
        if (one := rollout.clusters.get(cluster)) is not None
    )


def rollout_needs(model: ViewModel, cluster: str | None) -> Iterator[Alert]:
    """Stages that are paused, pinned, or wait for an approval. `cluster`: only those that have it."""
    stages = ((rollout, stage) for rollout in model.picture.rollouts for stage in rollout.stages)
    for rollout, stage in stages:
        if cluster is not None and cluster not in stage.clusters:
            continue
        count, subject, data = 1, f"rollout {rollout.rollout}/{stage.name}", {"revision": rollout.release}
        state = stage.state
        match state.kind:
            case StageKind.PAUSED:
                failed = state.failed
                whys = sorted({f"{name}: {rollout.clusters[name].why}" for name in failed if name in rollout.clusters})
                kind, count = EventKind.ROLLOUT_PAUSED, max(1, len(failed))
                title = f"the rollout {rollout.rollout} is paused in the stage {stage.name}"
                why = model.text("; ".join(whys[:3]))
            case StageKind.WAITS_FOR_APPROVAL:
                kind = EventKind.APPROVAL_AWAITED
                title = f"the rollout {rollout.rollout} needs an approval of the stage {stage.name}"
                ended = f"; its approval ended at {state.ended}" if state.ended else ""
                why = f"{short(rollout.release)} is done there{ended}"
                data["entry"] = state.entry
            case StageKind.PINNED:
                kind = EventKind.PINNED
                title = f"the stage {stage.name} of the rollout {rollout.rollout} is pinned to {short(state.pinned)}"
                why = f"{short(rollout.release)} does not reach it"
            case _:
                continue
        yield Alert(
            weight=Weight.ERROR if state.kind is StageKind.PAUSED else Weight.WARNING,
            what=AlertKind.ROLLOUT,
            title=title,
            why=why,
            count=count,
            since=model.journal.since(kind, subject),
            who=model.author(rollout.release),
            revision=rollout.release,
            todo=todo_of(kind, subject, data),
        )


def timers_of(model: ViewModel, *, cluster: str | None = None, identity: Identity | None = None) -> tuple[Timer, ...]:
    """The timers that run, the next to end first. `cluster`, `identity`: only those that concern it."""
    timers = (
        Timer(
            what=what,
            words=model.text(words),
            ends=ends,
            cluster=where,
            resource=model.resource(where or "", subject) if subject is not None else None,
        )
        for what, words, ends, where, subject in _running(model)
        if (not model.now or ends > model.now) and cluster in (None, where) and identity in (None, subject)
    )
    return tuple(sorted(timers, key=lambda timer: (timer.ends, timer.what, timer.words)))


def _running(model: ViewModel) -> Iterator[tuple[TimerKind, str, str, str | None, Identity | None]]:
    """Yield the kind, the words, the end, the cluster and the object of each timer."""
    for one in model.constraints:
        at, after = (one.cluster, one.identity), f"{one.cluster} again: {one.reason}"
        if one.until and one.tick is Tick.EVICTION:
            yield TimerKind.EVICTION, f"{one.identity} may come back to {one.cluster}", one.until, *at
        elif one.until and one.excludes:
            yield TimerKind.EXCLUSION, f"{one.identity} may be placed in {after}", one.until, *at
        elif one.until:
            yield (TimerKind.CAP, f"{one.identity} may have more than {one.replicas_max} in {after}", one.until, *at)
    leaves = "leaves" if model.facts.schedule.fleet.settings.failover_act else "would leave"
    for identity, cluster, ends in ends_of_patience(model.facts.schedule, model.observations):
        yield TimerKind.FAILOVER, f"{identity} {leaves} {cluster} unless it recovers", ends, cluster, identity
    for record in model.journal.suspensions:
        if record.until:
            words = f"the suspension of {record.scope} by {record.who or 'a person'} ends"
            yield TimerKind.SUSPENSION, words, record.until, cluster_in(record.scope), None
    for change in filter(is_waiting, model.picture.round.plan.changes):
        since = model.journal.timers.get(timer_of(change.identity, change.cluster))
        if since:
            words = f"the move of {change.identity} out of {change.cluster} counts as stuck: it {change.held}"
            yield TimerKind.MOVE, words, later(since, PATIENCE_S), change.cluster, change.identity
    for (cluster, identity), fought in model.facts.fights.items():
        yield TimerKind.FIGHT, f"{identity} in {cluster} is set back again", fought.until, cluster, identity


def cluster_in(scope: str) -> str | None:
    """Return the cluster that a suspension is of; None: it is of the fleet or of an object."""
    return scope.removeprefix("cluster ") if scope.startswith("cluster ") else None
