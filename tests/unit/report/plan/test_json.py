"""The machine format of a plan, key by key."""

from __future__ import annotations

import json
import random
from typing import Any

from msgspec.structs import replace

from reconciler.api.plan import MISSING, Action, FieldChange, FieldOwner, Plan
from reconciler.api.problem import Problem, Severity, Source
from reconciler.api.refs import GVK
from reconciler.report import json_text
from reconciler.report.plan import plan_document
from reconciler.report.plan.plan_json import summary
from tests.golden.plans import CONFIG_MAP, change, hostile_plan, ordinary_plan


def document(plan: Plan) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(json_text(plan_document(plan)))
    return parsed


def test_a_held_change_counts_as_held_and_nothing_else() -> None:
    plan = ordinary_plan()
    counts = summary(plan.changes)
    assert counts == {"create": 1, "update": 6, "replace": 0, "delete": 2, "release": 1, "adopt": 1, "held": 2}
    assert sum(counts.values()) == len(plan.changes)


def test_absent_fields_are_null_and_owners_are_named() -> None:
    owner = FieldOwner(manager="kubectl-edit", operation="Update", time="2026-11-21T09:00:00Z")
    fields = (
        FieldChange(path="a", before=MISSING, after=None),
        FieldChange(path="b", before=0, after=False, owner=owner),
    )
    found = document(Plan(base="", head="", changes=(change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=fields),)))
    assert found["changes"][0]["fields"] == [
        {"path": "a", "before": None, "after": None, "owner": None},
        {
            "path": "b",
            "before": 0,
            "after": False,
            "owner": {"manager": "kubectl-edit", "operation": "Update", "time": "2026-11-21T09:00:00Z"},
        },
    ]


def test_the_order_depends_on_the_content_alone() -> None:
    plan = replace(ordinary_plan(), problems=(*ordinary_plan().problems, *ordinary_plan().problems))
    expected = document(replace(plan, changes=tuple(found for found in plan.changes if found.gvk.kind != "Secret")))
    shuffled = [found for found in plan.changes if found.gvk.kind != "Secret"]
    random.Random(3).shuffle(shuffled)
    again = replace(plan, changes=tuple(shuffled), placements=plan.placements[::-1], problems=plan.problems[::-1])
    assert document(again) == expected


def test_a_problem_of_one_cluster_names_it() -> None:
    problem = Problem(
        source=Source("a.yaml", 3), path="spec", code="c", message="m", cluster="m1", severity=Severity.HINT
    )
    found = document(Plan(base="", head="", problems=(problem,), is_complete=False))
    assert found["problems"] == [
        {"severity": "hint", "code": "c", "source": "a.yaml:3", "path": "spec", "message": "m1: m"}
    ]
    assert found["complete"] is False


def test_is_valid_whatever_the_texts_and_numbers() -> None:
    huge = FieldChange(path="n", before=2**70, after="\ud800")
    plan = replace(
        hostile_plan(), changes=(*hostile_plan().changes, change(Action.UPDATE, "m1", CONFIG_MAP, "c", fields=(huge,)))
    )
    assert len(document(plan)["changes"]) == len(plan.changes)
    assert "\x1b" not in json_text(plan_document(hostile_plan()))
    assert "\u202e" not in json_text(plan_document(hostile_plan()))


def test_the_core_group_has_no_slash() -> None:
    found = plan_document(Plan(base="", head="", changes=(change(Action.CREATE, "m", GVK("", "v1", "Pod"), "p"),)))
    assert found["changes"][0]["resource"]["apiVersion"] == "v1"
