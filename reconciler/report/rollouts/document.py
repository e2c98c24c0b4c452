"""Rollouts for machines: `stages` and `rollouts` of a plan, and `rollouts` of a status with their state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.model.rollouts.plan import RolloutPlan, StagePlan
from reconciler.model.rollouts.progress import (
    Paused,
    Pinned,
    Progress,
    StageProgress,
    StageRunning,
    WaitsForApproval,
    WaitsForTime,
    WaitsForWindow,
)
from reconciler.model.rollouts.rollout import ConditionCheck
from reconciler.model.rollouts.window import Window
from reconciler.model.tree import Json
from reconciler.report.rollouts.words import state_word, state_words


def plan_parts(rollouts: Iterable[RolloutPlan]) -> dict[str, Json]:
    """`{rollouts: […], stages: […]}` of a plan; empty where it has no Rollout."""
    found = sorted(rollouts, key=lambda one: one.name)
    if not found:
        return {}
    return {
        "rollouts": [_rollout(one) for one in found],
        "stages": [_stage(one, number) for one in found for number in range(len(one.stages))],
    }


def _rollout(found: RolloutPlan) -> dict[str, Json]:
    return {
        "name": found.name,
        "new": found.is_new,
        "sound": found.is_sound,
        "changes": found.changes,
        "deletions": str(found.deletions),
        "deletionsAfterLast": found.later_deletions,
        "placement": str(found.placement),
        "placements": found.placements,
        "release": found.progress.release if found.progress is not None else None,
        "supersedes": found.superseded or None,
    }


def _stage(found: RolloutPlan, number: int) -> dict[str, Json]:
    """Return a stage as JSON. `after`: the stage with clusters before it, and its condition; null for the first."""
    plan = found.stages[number]
    earlier = [stage for stage in found.stages[:number] if stage.clusters and not stage.pinned]
    known = {one.name: one for one in found.progress.stages} if found.progress is not None else {}
    now = known.get(plan.stage.name)
    return {
        "rollout": found.name,
        "stage": plan.stage.name,
        "clusters": list(plan.clusters),
        "maxConcurrency": plan.at_once,
        "changes": plan.changes,
        "pinned": plan.pinned or None,
        "after": _after(earlier[-1]) if earlier else None,
        "windows": [_window(window) for window in plan.stage.windows],
        "now": stage_part(now) if now is not None else None,
    }


def _after(found: StagePlan) -> dict[str, Json]:
    gate, after = found.stage.gate, found.stage.after
    conditions = [check for check in gate.checks if isinstance(check, ConditionCheck)]
    return {
        "stage": found.stage.name,
        "healthy": gate.healthy,
        "conditions": [
            {"type": check.condition, "status": check.status, "of": str(check.of) if check.of is not None else None}
            for check in conditions
        ],
        "minSuccessSeconds": gate.min_success_s,
        "waitSeconds": after.wait_s,
        "approval": after.approval,
    }


def _window(window: Window) -> dict[str, Json]:
    return {
        "kind": str(window.kind),
        "cron": window.cron.text,
        "durationSeconds": window.duration_s,
        "timeZone": window.time_zone,
    }


def stage_part(found: StageProgress) -> dict[str, Json]:
    """Return `{name, clusters, state, why, done, until, approval, failed, pinned}`; null if not applicable.

    `approval`: the entry under `spec.approvals` that lets the next stage begin.
    """
    state, until = found.state, ""
    if isinstance(state, WaitsForTime | WaitsForWindow):
        until = state.until
    elif isinstance(state, WaitsForApproval):
        until = state.not_before
    return {
        "name": found.name,
        "clusters": list(found.clusters),
        "state": state_word(state),
        "why": state_words(found),
        "done": state.done if isinstance(state, StageRunning) else None,
        "until": until or None,
        "approval": state.entry if isinstance(state, WaitsForApproval) else None,
        "failed": list(state.failed) if isinstance(state, Paused) else [],
        "pinned": state.revision if isinstance(state, Pinned) else None,
    }


def rollouts_part(rollouts: Iterable[Progress], scrubbed: Callable[[str], str]) -> list[Json]:
    """Return `[{name, release, waiting, done, stages, clusters}]`, by name.

    `scrubbed`: redacts messages of clusters.
    """
    return [
        {
            "name": found.rollout,
            "release": found.release,
            "waiting": found.waiting or None,
            "done": found.is_done,
            "stages": [stage_part(stage) for stage in found.stages],
            "clusters": [
                {
                    "name": name,
                    "stage": cluster.stage or None,
                    "revision": cluster.revision or None,
                    "phase": str(cluster.phase),
                    "why": scrubbed(cluster.why),
                }
                for name, cluster in sorted(found.clusters.items())
            ],
        }
        for found in sorted(rollouts, key=lambda one: one.rollout)
    ]
