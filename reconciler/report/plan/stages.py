"""Stages of rollouts in words: their conditions, a plan's lines about them, and the revision in force in a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.plan import Plan
from reconciler.api.refs import Identity, short_revision
from reconciler.api.rollout_progress import (
    Phase,
    RolloutPlan,
    RolloutProgress,
    StageKind,
    StagePlan,
    StageProgress,
    StageState,
)
from reconciler.api.rollouts import ChangeTime, Gate, OnNewCommit, Stage, WindowKind
from reconciler.report.safe_text import visible
from reconciler.report.terminal import cluster_list
from reconciler.rollouts import lay_out, selected_of
from reconciler.scheduler import Schedule

_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_CLUSTERS_CHARS_MAX = 60
_QUERY_CHARS_MAX = 60


def span(seconds: int) -> str:
    """A length of time as it is written in a Rollout.

    >>> span(1800), span(5400), span(90000), span(0)
    ('30m', '1h30m', '1d1h', '0s')
    """
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def short(revision: str) -> str:
    """Twelve characters of a commit id; `nothing` for none."""
    return visible(short_revision(revision)) or "nothing"


def stage_name(clusters: Sequence[str]) -> str:
    """The clusters, or how many there are where the names are too long for a line."""
    names = cluster_list(clusters)
    return names if len(names) <= _CLUSTERS_CHARS_MAX else f"{len(clusters):,} clusters"


def asked_of(gate: Gate) -> str:
    """Return the conditions of a gate: `30m healthy with SmokeTestsPassed`; empty without conditions."""
    conditions = []
    for check in gate.checks:
        of = f" of {visible(str(check.of))}" if check.of is not None else ""
        status = "" if check.status == "True" else f"={visible(check.status)}"
        conditions.append(f"{visible(check.condition)}{status}{of}")
    for metric in gate.metrics:
        time = f" for {span(metric.for_s)}" if metric.for_s else ""
        query = visible(metric.query[:_QUERY_CHARS_MAX])
        conditions.append(f"{query} {metric.comparison} {metric.threshold:g}{time}")
    words = [span(gate.min_success_s) if gate.min_success_s else "", "healthy" if gate.healthy else ""]
    wait = " ".join(word for word in words if word)
    return " with ".join(part for part in (wait, " and ".join(conditions)) if part)


def waits_of(stage: Stage, *, is_last: bool) -> str:
    """Return the conditions for leaving a stage: `30m healthy, 24h and an approval of canary`; empty: none."""
    parts = [asked_of(stage.gate)]
    if not is_last:
        parts += [span(stage.after.wait_s) if stage.after.wait_s else ""]
        parts += [f"an approval of {visible(stage.name)}" if stage.after.approval else ""]
    *first, last = [part for part in parts if part] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def state_words(state: StageState) -> str:
    """Return the state of a stage and the reason of its waiting."""
    match state.kind:
        case StageKind.RUNNING:
            return f"in progress, {state.done} of {state.total}"
        case StageKind.WAITS_FOR_STAGE:
            return f"waits for the stage {visible(state.stage)}"
        case StageKind.WAITS_FOR_TIME:
            return f"done; the next stage begins at {state.until}"
        case StageKind.WAITS_FOR_APPROVAL:
            ended = state.ended
            need = f"its approval ended at {ended}: approve again" if ended else "the next stage needs an approval"
            return f"done; {need}" + (f", and begins after {state.until}" if state.until else "")
        case StageKind.WAITS_FOR_WINDOW:
            return "waits for its window" + (f" until {state.until}" if state.until else "")
        case StageKind.PAUSED:
            return f"PAUSED: {cluster_list(state.failed)} failed"
        case StageKind.PINNED:
            return f"PINNED to {short(state.pinned)}"
        case _:
            return {StageKind.SKIPPED: "skipped, no cluster", StageKind.UNCLEAR: "unclear, nothing begins"}.get(
                state.kind, "done"
            )


_TITLE = "Stages   "
_MERGE = "  this merge: "


def stage_lines(plan: Plan) -> list[str]:
    """Return the plan's staged changes, and those made at once all the same; empty without a Rollout."""
    lines: list[str] = []
    for rollout in plan.rollouts:
        title = _TITLE if not lines else " " * len(_TITLE)
        new, stages = " (new)" if rollout.is_new else "", " → ".join(map(_stage, rollout.stages))
        lines += [f"{title}{visible(rollout.name)}{new}: {stages}", *_lines(rollout)]
    free = sum(not change.stage for change in plan.changes)
    if lines and free and any(rollout.is_merge for rollout in plan.rollouts):
        lines.append(f"  at once: {free:,} of {len(plan.changes):,} changes go through no stage")
    return lines


def _stage(stage: StagePlan) -> str:
    width = f", {stage.at_once} at a time" if 1 < stage.at_once < len(stage.clusters) else ""
    width = ", all at once" if len(stage.clusters) > 1 and stage.at_once >= len(stage.clusters) else width
    return f"{visible(stage.stage.name)} ({stage_name(stage.clusters) or 'no cluster, skipped'}{width})"


def _lines(rollout: RolloutPlan) -> Iterator[str]:
    if rollout.progress is not None:
        yield "  now    " + "   ".join(_now(stage, rollout.progress) for stage in rollout.progress.stages)
        for stage in rollout.progress.stages:
            if stage.state.entry:
                yield f"  to approve {visible(stage.name)}, add under spec.approvals: {visible(stage.state.entry)}"
    if not rollout.is_merge:
        return
    if not rollout.is_sound:
        yield "  ! nothing begins: a cluster is in no stage or in two, or a pin is not clear (see the problems)"
        return
    yield from _merge(rollout)
    if rollout.later_deletions:
        yield f"  deletions: {rollout.later_deletions:,} after the last stage"
    if rollout.placements:
        when = (
            "at once (placement is not staged)" if rollout.placement is ChangeTime.NOW else "when the last stage begins"
        )
        yield f"  placement: {rollout.placements:,} changed, {when}"
    if rollout.superseded and rollout.progress is not None:
        behind = sum(
            one.revision != rollout.progress.release and one.phase not in (Phase.PINNED, Phase.FROZEN)
            for one in rollout.progress.clusters.values()
        )
        is_queued = rollout.on_new_commit is OnNewCommit.QUEUE
        done = "waits until the rollout of {} is done" if is_queued else "! supersedes the rollout of {}"
        reach = f"{behind:,} cluster{'' if behind == 1 else 's'}"
        yield f"  {done.format(short(rollout.superseded))}, which has not reached {reach}"


def _now(stage: StageProgress, progress: RolloutProgress) -> str:
    """`eu 1a2b3c4 in 3, 5f3c9d2 in 1, in progress, 1 of 4`."""
    counts = Counter(progress.clusters[name].revision for name in stage.clusters if name in progress.clusters)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    revisions = [f"{short(revision)} in {count:,}" for revision, count in ordered]
    at = short(ordered[0][0]) if len(ordered) == 1 else ", ".join(revisions)
    return f"{visible(stage.name)} {at} ({state_words(stage.state)})" if ordered else f"{visible(stage.name)} (skipped)"


def _merge(rollout: RolloutPlan) -> Iterator[str]:
    if not rollout.changes:
        yield f"{_MERGE}nothing of what it stages changes"
        return
    taking = [stage for stage in rollout.stages if stage.clusters]
    going = [stage for stage in taking if not stage.pinned]
    for number, stage in enumerate(going):
        begins = f"{visible(stage.stage.name)} at once" if number == 0 else f"then {visible(stage.stage.name)}"
        waits = waits_of(stage.stage, is_last=number == len(going) - 1)
        windows = "".join(
            f', {"only" if window.kind is WindowKind.ALLOW else "never"} "{visible(window.cron.text)}" for '
            f"{span(window.duration_s)} ({visible(window.time_zone)})"
            for window in stage.stage.windows
        )
        step = f"{begins}{windows}{f', then waits {waits}' if waits else ''}"
        yield (_MERGE if number == 0 else " " * len(_MERGE)) + step
    for stage in taking:
        if stage.pinned:
            yield f"  ! {visible(stage.stage.name)} is pinned to {short(stage.pinned)}, and gets nothing of it"


Document = Mapping[str, Any]

_NOT_KNOWN: Document = {"revision": None, "phase": None, "why": "where it stands is not known here"}


def in_force_of(
    schedule: Schedule, identity: Identity, clusters: Iterable[str], known: Iterable[Document]
) -> tuple[Document, ...]:
    """Return the revisions in force of a resource; null: not known, or none. `known`: `rollouts` of a status."""
    fleet = schedule.fleet
    if not fleet.rollouts:
        return ()
    standing = {(each["name"], one["name"]): one for each in known for one in each["clusters"]}
    selection = selected_of(schedule)
    names = selection.tied.get(identity) or selection.rollouts.get(identity, ())
    stages = {one.name: lay_out(one, fleet.clusters).stage_of for one in fleet.rollouts if one.name in names}
    return tuple(
        {
            "cluster": cluster,
            "rollout": name,
            "stage": (stages[name][cluster].stage.name or None) if cluster in stages[name] else None,
            "revision": each["revision"] or None,
            "phase": each["phase"] or None,
            "why": each["why"],
        }
        for cluster in sorted(clusters)
        for name in sorted(stages)
        for each in [standing.get((name, cluster), _NOT_KNOWN)]
    )


def in_force_lines(entries: Iterable[Document]) -> Iterator[str]:
    """`m2  default/rest  at 1a2b3c4d5e6f (behind): its turn has not come`."""
    for one in entries:
        where = f"{one['rollout']}/{one['stage'] or 'no stage'}"
        at = f"at {short(one['revision'] or '')} ({one['phase']})" if one["phase"] else "at a revision"
        yield visible(f"{one['cluster']}  {where}  {at}: {one['why']}")
