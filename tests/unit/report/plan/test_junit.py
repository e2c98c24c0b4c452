"""JUnit: what turns the check red fails, what is done passes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from reconciler.api.plan import Plan
from reconciler.report.plan.annotations import plans_junit
from tests.golden.hostile_plans import plans
from tests.golden.plans import hostile_plan, ordinary_plan
from tests.golden.pulls import PULLS, fleet_wide_bump


def suites(plan: Plan) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(plans_junit([plan]).encode()))  # noqa: S314 - of our own making


def verdicts(plan: Plan) -> dict[str, set[str]]:
    return {
        suite.attrib["name"]: {child.tag for case in suite for child in case if child.tag != "system-out"}
        for suite in suites(plan)
    }


@settings(max_examples=40)
@given(plans())
def test_is_xml_whatever_the_texts_and_counts_what_it_holds(plan: Plan) -> None:
    for suite in suites(plan):
        assert int(suite.attrib["tests"]) == len(suite)
        for verdict, counted in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[counted]) == len(suite.findall(f"testcase/{verdict}"))
        assert {child.tag for case in suite for child in case} <= {"failure", "error", "skipped", "system-out"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing", {"Fleet plan": set()}),
        ("own-images", {"Fleet plan": set(), "Changes": set()}),
        ("released-team", {"Fleet plan": set(), "Deletions, replacements and releases": set()}),
        ("two-deletions", {"Fleet plan": set(), "Deletions, replacements and releases": {"skipped"}}),
        ("fleet-wide-bump",
         {"Fleet plan": set(), "Deletions, replacements and releases": {"failure"}, "Changes": set()}),
        ("broken-file", {"Fleet plan": set(), "Problems": {"failure"}}),
        ("unreadable-cluster", {"Fleet plan": {"error"}, "Problems": {"failure"}, "Changes": set()}),
        ("without-observations", {"Fleet plan": {"error"}, "Not judged": {"error"}}),
    ],
)  # fmt: skip
def test_only_what_turns_the_check_red_fails(name: str, expected: dict[str, set[str]]) -> None:
    assert verdicts(PULLS[name]()) == expected


def test_what_the_guard_holds_names_every_object_and_how_to_let_it_pass() -> None:
    failed = suites(fleet_wide_bump())[1].find("testcase/failure")
    assert failed is not None
    assert failed.attrib["message"].startswith("guard: 50 deletions")
    assert "demo/old-{9,19,29,39,49}" in (failed.text or "")
    assert "spec.guards.confirm: 8c1f0a6be21d4477" in (failed.text or "")


def test_warnings_pass_and_the_hostile_plan_is_valid() -> None:
    problems = next(suite for suite in suites(ordinary_plan()) if suite.attrib["name"] == "Problems")
    assert (problems.attrib["tests"], problems.attrib["failures"]) == ("2", "1")
    assert len(suites(hostile_plan())) == 4
