"""Rollouts as the page shows them: the stages, actions for a person, and the active revision of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.ledger import EventKind
from reconciler.model.rollouts.progress import Paused, Pinned, Progress, StageProgress, WaitsForApproval
from reconciler.report.rollouts.words import short, state_word, state_words
from reconciler.report.views.shapes import InForcePart, Need, RolloutPart, StagePart, Weight, What
from reconciler.report.views.sight import Sight


def rollouts_of(sight: Sight) -> tuple[RolloutPart, ...]:
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


def _stage(found: Progress, stage: StageProgress) -> StagePart:
    there = sum(found.clusters[name].revision == found.release for name in stage.clusters if name in found.clusters)
    return StagePart(
        name=stage.name,
        state=state_word(stage.state),
        why=state_words(stage),
        clusters=stage.clusters,
        there=there,
        approval=stage.state.entry if isinstance(stage.state, WaitsForApproval) else None,
    )


def in_force_in(sight: Sight, cluster: str) -> tuple[InForcePart, ...]:
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


def rollout_needs(sight: Sight, cluster: str | None) -> Iterator[Need]:
    """Stages that are paused, pinned, or wait for an approval. `cluster`: only those that have it."""
    for found in sight.picture.rollouts:
        for stage in found.stages:
            if cluster is None or cluster in stage.clusters:
                yield from _need(sight, found, stage)


def _need(sight: Sight, found: Progress, stage: StageProgress) -> Iterator[Need]:
    count = 1
    match stage.state:
        case Paused(failed=failed):
            whys = sorted({f"{name}: {found.clusters[name].why}" for name in failed if name in found.clusters})
            kind, count = EventKind.ROLLOUT_PAUSED, max(1, len(failed))
            title = f"the rollout {found.rollout} is paused in the stage {stage.name}"
            why = sight.text("; ".join(whys[:3]))
            todo = "mend it by a commit, or revert; nothing further begins until then"
        case WaitsForApproval(entry=entry):
            kind = EventKind.APPROVAL_AWAITED
            title = f"the rollout {found.rollout} needs an approval of the stage {stage.name}"
            why = f"{short(found.release)} is done there"
            todo = f"`reconciler approve {stage.name}`, or add under spec.approvals: {entry}"
        case Pinned(revision=revision):
            kind = EventKind.PINNED
            title = f"the stage {stage.name} of the rollout {found.rollout} is pinned to {short(revision)}"
            why = f"{short(found.release)} does not reach it"
            todo = "take it out of spec.pin once it is not needed any more"
        case _:
            return
    yield Need(
        weight=Weight.ERROR if isinstance(stage.state, Paused) else Weight.WARNING,
        what=What.ROLLOUT,
        title=title,
        why=why,
        count=count,
        since=sight.noted.since(kind, f"rollout {found.rollout}/{stage.name}"),
        revision=found.release,
        todo=todo,
    )
