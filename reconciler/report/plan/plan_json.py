"""A plan for machines, version 1. A held change counts under `held` alone. Source: design#machine-formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import to_builtins

from reconciler.api.content import Json
from reconciler.api.plan import Action, Change, FieldChange, NotEvaluated, PlacementChange, Plan
from reconciler.api.rollout_progress import RolloutPlan, RolloutProgress, StageKind, StagePlan, StageProgress
from reconciler.report.json_parts import placement_part, problems_part, reasons_part, resource_part, values_part
from reconciler.report.plan.equal_changes import alike, redacted
from reconciler.report.plan.groups import PlanEntry
from reconciler.report.plan.stages import state_words


def plan_parts(rollouts: Iterable[RolloutPlan]) -> dict[str, Json]:
    """`{rollouts: […], stages: […]}` of a plan; empty where it has no Rollout."""
    ordered = sorted(rollouts, key=lambda one: one.name)
    if not ordered:
        return {}
    return {
        "rollouts": [
            {
                "name": one.name,
                "new": one.is_new,
                "sound": one.is_sound,
                "changes": one.changes,
                "deletions": str(one.deletions),
                "deletionsAfterLast": one.later_deletions,
                "placement": str(one.placement),
                "placements": one.placements,
                "release": one.progress.release if one.progress is not None else None,
                "supersedes": one.superseded or None,
            }
            for one in ordered
        ],
        "stages": [_stage(one, number) for one in ordered for number in range(len(one.stages))],
    }


def _stage(rollout: RolloutPlan, number: int) -> dict[str, Json]:
    """Return a stage as JSON. `after`: the stage with clusters before it, and its condition; null for the first."""
    plan = rollout.stages[number]
    earlier = [stage for stage in rollout.stages[:number] if stage.clusters and not stage.pinned]
    known = {one.name: one for one in rollout.progress.stages} if rollout.progress is not None else {}
    now = known.get(plan.stage.name)
    return {
        "rollout": rollout.name,
        "stage": plan.stage.name,
        "clusters": list(plan.clusters),
        "maxConcurrency": plan.at_once,
        "changes": plan.changes,
        "pinned": plan.pinned or None,
        "after": _after(earlier[-1]) if earlier else None,
        "windows": [
            {
                "kind": str(window.kind),
                "cron": window.cron.text,
                "durationSeconds": window.duration_s,
                "timeZone": window.time_zone,
            }
            for window in plan.stage.windows
        ],
        "now": stage_part(now) if now is not None else None,
    }


def _after(stage: StagePlan) -> dict[str, Json]:
    gate, after = stage.stage.gate, stage.stage.after
    return {
        "stage": stage.stage.name,
        "healthy": gate.healthy,
        "conditions": [
            {"type": check.condition, "status": check.status, "of": str(check.of) if check.of is not None else None}
            for check in gate.checks
        ],
        "minSuccessSeconds": gate.min_success_s,
        "waitSeconds": after.wait_s,
        "approval": after.approval,
    }


def stage_part(stage: StageProgress) -> dict[str, Json]:
    """Return a stage; null where not applicable. `approval`: the entry of spec.approvals that opens the next one."""
    state = stage.state
    return {
        "name": stage.name,
        "clusters": list(stage.clusters),
        "state": str(state.kind),
        "why": state_words(state),
        "done": state.done if state.kind is StageKind.RUNNING else None,
        "until": state.until or None,
        "approval": state.entry or None,
        "failed": list(state.failed),
        "pinned": state.pinned or None,
    }


def rollouts_part(rollouts: Iterable[RolloutProgress], scrubbed: Callable[[str], str]) -> list[Json]:
    """Return `[{name, release, waiting, done, stages, clusters}]`, by name. `scrubbed`: redacts cluster messages."""
    return [
        {
            "name": rollout.rollout,
            "release": rollout.release,
            "waiting": rollout.waiting or None,
            "done": rollout.is_done,
            "stages": [stage_part(stage) for stage in rollout.stages],
            "clusters": [
                {
                    "name": name,
                    "stage": cluster.stage or None,
                    "revision": cluster.revision or None,
                    "phase": str(cluster.phase),
                    "why": scrubbed(cluster.why),
                }
                for name, cluster in sorted(rollout.clusters.items())
            ],
        }
        for rollout in sorted(rollouts, key=lambda one: one.rollout)
    ]


def plan_document(plan: Plan) -> dict[str, Json]:
    """Return the plan as a JSON document, redacted, in an order that depends on its content alone."""
    plan = redacted(plan)
    return {
        "version": 1,
        "base": plan.base,
        "head": plan.head,
        "complete": plan.is_complete,
        "summary": summary(plan.changes),
        "grouped": [_group(each) for each in alike(plan.changes)],
        "changes": [
            _change(change)
            for change in sorted(plan.changes, key=lambda one: (one.cluster, *one.identity, str(one.action)))
        ],
        "placements": [_placement(placement) for placement in plan.placements],
        "unjudged": [_not_evaluated(each) for each in plan.unjudged],
        **plan_parts(plan.rollouts),
        **settings_part(plan),
        "problems": problems_part(plan.problems),
    }


def summary(changes: Iterable[Change]) -> dict[str, int]:
    """Return the number of changes of each action that are made now, and the number of held ones."""
    counts = {**{str(action): 0 for action in Action}, "held": 0}
    for change in changes:
        counts["held" if change.held is not None else str(change.action)] += 1
    return counts


def _change(change: Change) -> dict[str, Json]:
    return {
        "action": str(change.action),
        "cluster": change.cluster,
        "resource": resource_part(change.gvk, change.identity),
        "cause": str(change.cause),
        "source": str(change.source),
        "held": change.held,
        **({"stage": change.stage} if change.stage else {}),
        "fields": [_field(field) for field in change.fields],
    }


def _group(entry: PlanEntry) -> dict[str, Json]:
    """Return a group of equal changes; `clusters` of a field is null if it is equal in all of them."""
    return {
        "action": str(entry.action),
        "apiVersion": entry.gvk.api_version,
        "kind": entry.identity.kind,
        "cause": str(entry.cause),
        "held": entry.held,
        "count": entry.count,
        "objects": entry.objects,
        "clusters": list(entry.clusters),
        "fields": [
            {
                **values_part(line.path, line.before, line.after),
                "clusters": None if line.clusters == entry.clusters else list(line.clusters),
            }
            for line in entry.fields
        ],
        "members": [
            {
                "clusters": list(clusters),
                "objects": [{"namespace": one.namespace, "name": one.name, "source": str(at)} for one, at in members],
            }
            for clusters, members in entry.places
        ],
    }


def _field(field: FieldChange) -> dict[str, Json]:
    return {**values_part(field.path, field.before, field.after), "owner": to_builtins(field.owner)}


def _not_evaluated(one: NotEvaluated) -> dict[str, Json]:
    return {
        "resource": resource_part(one.gvk, one.identity),
        "source": str(one.source),
        "why": one.why,
        "notes": list(one.notes),
        "fields": [_field(field) for field in one.fields],
        "policyFields": [_field(field) for field in one.policy_fields],
    }


def _placement(placement: PlacementChange) -> dict[str, Json]:
    return {
        "resource": resource_part(placement.gvk, placement.identity),
        "before": placement_part(placement.before),
        "after": placement_part(placement.after),
        **({"overridden": placement_part(placement.overridden)} if placement.overridden else {}),
        "reasons": reasons_part(placement.reasons),
    }


def settings_part(plan: Plan) -> dict[str, Json]:
    """Return `{settings: [...], settingsDigest}` of a redacted plan; empty where none changes."""
    if not plan.settings:
        return {}
    settings: list[Json] = [
        {
            "document": change.document,
            "source": str(change.source),
            **values_part(change.path, change.before, change.after),
            "direction": str(change.direction),
            "meaning": change.meaning,
            "held": change.held,
        }
        for change in plan.settings
    ]
    return {"settings": settings, "settingsDigest": plan.settings_digest or None}
