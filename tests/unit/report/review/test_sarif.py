"""SARIF: what its schema requires is there, what it does not know is not, and nothing of the plan is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from reconciler.model.plan import Plan
from reconciler.report.review.sarif import plans_sarif
from tests.golden.hostile_plans import plans
from tests.golden.plans import hostile_plan, ordinary_plan
from tests.golden.pulls import PULLS, fleet_wide_bump

Members = dict[str, tuple[type | tuple[Any, ...], bool]]
INTEGER_FROM_1 = (int, 1)
SCHEMA: dict[str, Members] = {
    "log": {"$schema": (str, False), "version": (("2.1.0",), True), "runs": (("list", "run"), True)},
    "run": {
        "tool": (("tool",), True),
        "invocations": (("list", "invocation"), False),
        "properties": (dict, False),
        "results": (("list", "result"), False),
    },
    "tool": {"driver": (("toolComponent",), True)},
    "toolComponent": {"name": (str, True), "version": (str, False), "rules": (("list", "reportingDescriptor"), False)},
    "reportingDescriptor": {"id": (str, True)},
    "invocation": {"executionSuccessful": (bool, True)},
    "result": {
        "ruleId": (str, False),
        "level": (("none", "note", "warning", "error"), False),
        "message": (("message",), True),
        "locations": (("list", "location"), False),
        "relatedLocations": (("list", "location"), False),
        "occurrenceCount": (INTEGER_FROM_1, False),
        "partialFingerprints": (dict, False),
    },
    "message": {"text": (str, True)},
    "location": {"physicalLocation": (("physicalLocation",), False)},
    "physicalLocation": {"artifactLocation": (("artifactLocation",), True), "region": (("region",), False)},
    "artifactLocation": {"uri": (str, True)},
    "region": {"startLine": (INTEGER_FROM_1, True)},
}
"""The part of the 2.1.0 schema that is used: what a member holds, and whether it is required. It takes no others."""


def check(value: Any, name: str) -> None:
    """The value is an object of that definition."""
    members = SCHEMA[name]
    assert isinstance(value, dict)
    assert value.keys() <= members.keys(), f"{name} has no {value.keys() - members.keys()}"
    for key, (kind, is_required) in members.items():
        assert key in value or not is_required, f"{name} needs {key}"
        if key in value:
            _check_member(value[key], kind)


def _check_member(value: Any, kind: Any) -> None:
    match kind:
        case ("list", name):
            assert isinstance(value, list)
            for item in value:
                check(item, name)
            assert name != "location" or len({json.dumps(item) for item in value}) == len(value)
        case (name,) if name in SCHEMA:
            check(value, name)
        case (first, least) if first is int:
            assert isinstance(value, int)
            assert value >= least
        case tuple():
            assert value in kind
        case _:
            assert isinstance(value, kind)
            assert value != ""


def document(plan: Plan) -> Any:
    return json.loads(plans_sarif([plan], version="1.2"))


@pytest.mark.parametrize("name", PULLS)
def test_has_what_the_schema_requires_and_nothing_that_it_does_not_know(name: str) -> None:
    check(document(PULLS[name]()), "log")


@settings(max_examples=40)
@given(plans())
def test_is_valid_whatever_the_texts(plan: Plan) -> None:
    found = document(plan)
    check(found, "log")
    (run,) = found["runs"]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for result in run["results"]:
        for place in (*result.get("locations", ()), *result.get("relatedLocations", ())):
            assert place["physicalLocation"]["artifactLocation"]["uri"].isascii()


def test_the_checker_finds_faults() -> None:
    for broken in ({"version": "2.0", "runs": []}, {"version": "2.1.0"}, {"version": "2.1.0", "runs": [{"tool": {}}]}):
        with pytest.raises(AssertionError):
            check(broken, "log")


def test_losses_come_first_and_have_a_level() -> None:
    (run,) = document(ordinary_plan())["runs"]
    assert [(result["ruleId"], result["level"]) for result in run["results"]][:5] == [
        ("fleet-delete", "warning"),
        ("fleet-release", "warning"),
        ("fleet-delete", "error"),
        ("fleet-delete", "error"),
        ("object-not-ours", "error"),
    ]
    assert run["invocations"] == [{"executionSuccessful": False}]


def test_equal_changes_are_one_result_with_a_count_and_all_places() -> None:
    (run,) = document(fleet_wide_bump())["runs"]
    _, bump = run["results"]
    assert bump["occurrenceCount"] == 5000
    assert len(bump["locations"]) + len(bump["relatedLocations"]) == 5000
    assert "nginx:1.27 → nginx:1.28" in bump["message"]["text"]


def test_two_plans_are_two_runs_and_the_hostile_one_is_valid() -> None:
    found = json.loads(plans_sarif([ordinary_plan(), hostile_plan()], version="1"))
    check(found, "log")
    assert len(found["runs"]) == 2
