"""The stages of a plan in lines that the terminal, the pull request and the page of a review share.

Stages   default: canary (m1) → eu (m2, m3, 2 at a time)
now    canary 5f3c9d2a0b1c, done   eu 1a2b3c4d5e6f, in progress, 1 of 2
this merge: canary at once, then waits 30m healthy and an approval of canary
then eu, then waits healthy
! supersedes the rollout of 1a2b3c4d5e6f, which has not reached 2 clusters
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.model.plan import Plan
from reconciler.model.rollouts.plan import RolloutPlan, StagePlan
from reconciler.model.rollouts.progress import Phase, Progress, StageProgress, WaitsForApproval
from reconciler.model.rollouts.rollout import OnNewCommit, When
from reconciler.report.rollouts.words import named, short, state_words, waits_of, window_words
from reconciler.report.text.safe import visible

_TITLE = "Stages   "
_MERGE = "  this merge: "


def stage_lines(plan: Plan) -> list[str]:
    """Return the plan's staged changes, and those made at once all the same; empty without a Rollout."""
    lines: list[str] = []
    for found in plan.rollouts:
        lines += [(_TITLE if not lines else " " * len(_TITLE)) + _course(found), *_lines(found)]
    free = sum(not change.stage for change in plan.changes)
    if lines and free and any(found.is_merge for found in plan.rollouts):
        lines.append(f"  at once: {free:,} of {len(plan.changes):,} changes go through no stage")
    return lines


def _course(found: RolloutPlan) -> str:
    stages = " → ".join(map(_stage, found.stages))
    return f"{visible(found.name)}{' (new)' if found.is_new else ''}: {stages}"


def _stage(found: StagePlan) -> str:
    width = f", {found.at_once} at a time" if 1 < found.at_once < len(found.clusters) else ""
    width = ", all at once" if len(found.clusters) > 1 and found.at_once >= len(found.clusters) else width
    return f"{visible(found.stage.name)} ({named(found.clusters) or 'no cluster, skipped'}{width})"


def _lines(found: RolloutPlan) -> Iterator[str]:
    if found.progress is not None:
        yield "  now    " + "   ".join(_now(stage, found.progress) for stage in found.progress.stages)
        yield from _approvals(found.progress)
    if not found.is_merge:
        return
    if not found.is_sound:
        yield "  ! nothing begins: a cluster is in no stage or in two, or a pin is not clear (see the problems)"
        return
    yield from _merge(found)
    if found.later_deletions:
        yield f"  deletions: {found.later_deletions:,} after the last stage"
    if found.placements:
        when = "at once (placement is not staged)" if found.placement is When.NOW else "when the last stage begins"
        yield f"  placement: {found.placements:,} changed, {when}"
    if found.superseded and found.progress is not None:
        yield _superseded(found, found.progress)


def _now(stage: StageProgress, progress: Progress) -> str:
    """`eu 1a2b3c4 in 3, 5f3c9d2 in 1, in progress, 1 of 4`."""
    counts = Counter(progress.clusters[name].revision for name in stage.clusters if name in progress.clusters)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    revisions = [f"{short(revision)} in {count:,}" for revision, count in ordered]
    shown = short(ordered[0][0]) if len(ordered) == 1 else ", ".join(revisions)
    return f"{visible(stage.name)} {shown} ({state_words(stage)})" if ordered else f"{visible(stage.name)} (skipped)"


def _approvals(progress: Progress) -> Iterator[str]:
    for stage in progress.stages:
        if isinstance(stage.state, WaitsForApproval):
            yield f"  to approve {visible(stage.name)}, add under spec.approvals: {visible(stage.state.entry)}"


def _merge(found: RolloutPlan) -> Iterator[str]:
    """Yield the order of the merge's stages."""
    if not found.changes:
        yield f"{_MERGE}nothing of what it stages changes"
        return
    taking = [stage for stage in found.stages if stage.clusters]
    going = [stage for stage in taking if not stage.pinned]
    for number, stage in enumerate(going):
        begins = f"{visible(stage.stage.name)} at once" if number == 0 else f"then {visible(stage.stage.name)}"
        waits = waits_of(stage.stage, is_last=number == len(going) - 1)
        windows = "".join(f", {window_words(window)}" for window in stage.stage.windows)
        said = f"{begins}{windows}{f', then waits {waits}' if waits else ''}"
        yield (_MERGE if number == 0 else " " * len(_MERGE)) + said
    yield from _pinned(taking)


def _pinned(stages: Sequence[StagePlan]) -> Iterator[str]:
    for stage in stages:
        if stage.pinned:
            yield f"  ! {visible(stage.stage.name)} is pinned to {short(stage.pinned)}, and gets nothing of it"


def _superseded(found: RolloutPlan, progress: Progress) -> str:
    behind = sum(
        one.revision != progress.release and one.phase not in (Phase.PINNED, Phase.FROZEN)
        for one in progress.clusters.values()
    )
    reach = f"{behind:,} cluster{'' if behind == 1 else 's'}"
    if found.on_new_commit is OnNewCommit.QUEUE:
        return f"  waits until the rollout of {short(found.superseded)} is done, which has not reached {reach}"
    return f"  ! supersedes the rollout of {short(found.superseded)}, which has not reached {reach}"
