"""A plan for machines: `diff -o json`, and the plan inside `apply -o json`. Version 1.

A held change counts under `held` alone, so that the numbers add up to the number of changes and say what is done now.
`before` and `after` are null where a field is absent. Source: design#machine-formats.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.plan import MISSING, Action, Change, FieldChange, FieldOwner, PlacementChange, Plan, Unjudged
from reconciler.model.tree import Json
from reconciler.report.json_parts import json_text, placement_part, problems_part, reasons_part, resource_part
from reconciler.report.mask import mask_plan
from reconciler.report.plan.alike import Alike, Place, alike
from reconciler.report.plan.group import FieldLine
from reconciler.report.rollouts.document import plan_parts


def plan_json(plan: Plan) -> str:
    """Return the plan as a JSON text."""
    return json_text(plan_document(plan))


def plan_document(plan: Plan) -> dict[str, Json]:
    """Return the plan as a JSON document, redacted, in an order that depends on its content alone."""
    plan = mask_plan(plan)
    return {
        "version": 1,
        "base": plan.base,
        "head": plan.head,
        "complete": plan.is_complete,
        "summary": summary(plan.changes),
        "grouped": [_group(found) for found in alike(plan.changes)],
        "changes": [_change(change) for change in sorted(plan.changes, key=_order)],
        "placements": [_placement(placement) for placement in sorted(plan.placements, key=lambda at: at.identity)],
        "unjudged": [_unjudged(found) for found in sorted(plan.unjudged, key=lambda found: found.identity)],
        **plan_parts(plan.rollouts),
        "problems": problems_part(plan.problems),
    }


def summary(changes: Iterable[Change]) -> dict[str, int]:
    """Return the number of changes of each action that are made now, and the number of held ones."""
    counts = {**{str(action): 0 for action in Action}, "held": 0}
    for change in changes:
        counts["held" if change.held is not None else str(change.action)] += 1
    return counts


def _order(change: Change) -> tuple[str, ...]:
    return (change.cluster, *change.identity, str(change.action))


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


def _group(found: Alike) -> dict[str, Json]:
    """Return a group of equal changes; `clusters` of a field is null if it is equal in all of them."""
    entry = found.entry
    return {
        "action": str(entry.action),
        "apiVersion": entry.gvk.api_version,
        "kind": entry.identity.kind,
        "cause": str(entry.cause),
        "held": entry.held,
        "count": found.count,
        "objects": found.objects,
        "clusters": list(entry.clusters),
        "fields": [_line(line, entry.clusters) for line in entry.fields],
        "members": [_member(place) for place in found.places],
    }


def _line(line: FieldLine, clusters: tuple[str, ...]) -> dict[str, Json]:
    return {
        "path": line.path,
        "before": None if line.before is MISSING else line.before,
        "after": None if line.after is MISSING else line.after,
        "clusters": None if line.clusters == clusters else list(line.clusters),
    }


def _member(place: Place) -> dict[str, Json]:
    return {
        "clusters": list(place.clusters),
        "objects": [
            {"namespace": one.namespace, "name": one.name, "source": str(source)} for one, source in place.members
        ],
    }


def _field(field: FieldChange) -> dict[str, Json]:
    return {
        "path": field.path,
        "before": None if field.before is MISSING else field.before,
        "after": None if field.after is MISSING else field.after,
        "owner": _owner(field.owner),
    }


def _unjudged(found: Unjudged) -> dict[str, Json]:
    return {
        "resource": resource_part(found.gvk, found.identity),
        "source": str(found.source),
        "why": found.why,
        "notes": list(found.notes),
        "fields": [_field(field) for field in found.fields],
        "policyFields": [_field(field) for field in found.policy_fields],
    }


def _owner(owner: FieldOwner | None) -> Json:
    if owner is None:
        return None
    return {"manager": owner.manager, "operation": owner.operation, "time": owner.time}


def _placement(placement: PlacementChange) -> dict[str, Json]:
    return {
        "resource": resource_part(placement.gvk, placement.identity),
        "before": placement_part(placement.before),
        "after": placement_part(placement.after),
        **({"overridden": placement_part(placement.overridden)} if placement.overridden else {}),
        "reasons": reasons_part(placement.reasons),
    }
