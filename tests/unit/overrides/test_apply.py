"""Override rules, by the tables under tests/cases/overrides: policies and objects in, a body or an error out."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from reconciler.api.problem import Severity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.overrides import apply_quiet_rules, apply_rules, are_quiet, changing_quietly
from reconciler.render import problems_in, render_all, render_copy
from reconciler.templates import images_of
from tests.rendering import ABSENT, Case, cases_of, fleet_of_case, inputs_of, name_of, subject, value_at

TABLES = ("overriders", "order", "errors", "pages")
ALL = cases_of("overrides", *TABLES)
KNOWN = {
    "case", "source", "table", "object", "objects", "policies", "overriders", "api", "clusters", "cluster", "look",
    "expect", "absent", "error", "line", "path", "says", "warnings", "rules", "trace", "unchanged", "never_says",
}  # fmt: skip


def test_every_case_has_a_source_and_only_known_keys() -> None:
    assert all(case["source"] and not set(case) - KNOWN for case in ALL)
    assert len({name_of(case) for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=[name_of(case) for case in ALL])
def test_override(case: Case) -> None:
    fleet = fleet_of_case(case)
    identity = subject(fleet.templates, case)
    before = copy.deepcopy(fleet.templates[identity].body)
    cluster = case.get("cluster", "m1")
    rendered = render_copy(inputs_of(fleet), identity, cluster, None)
    assert fleet.templates[identity].body == before, "the template was written into"
    errors = [problem for problem in rendered.problems if problem.severity is Severity.ERROR]
    warnings = [problem.code for problem in rendered.problems if problem.severity is Severity.WARNING]
    assert warnings == case.get("warnings", [])
    if "error" in case:
        assert rendered.manifest is None
        (problem,) = errors
        assert problem.code == case["error"]
        assert problem.cluster == cluster
        assert problem.source.path == "policies.yaml"
        assert problem.source.line == case.get("line", problem.source.line)
        assert problem.path == case.get("path", problem.path)
        assert case.get("says", "") in problem.message
        assert all(text not in problem.message for text in case.get("never_says", ()))
        return
    assert not errors
    assert rendered.manifest is not None
    body: Any = rendered.manifest.body
    assert {pointer: value_at(body, pointer) for pointer in case.get("expect", {})} == case.get("expect", {})
    assert all(value_at(body, pointer) is ABSENT for pointer in case.get("absent", ()))
    if case.get("unchanged"):
        assert body == before
    if "rules" in case:
        assert list(rendered.manifest.overrides) == case["rules"]
    if "trace" in case:
        traced = {entry.path: f"{entry.policy} rule {entry.rule} {entry.overrider}" for entry in rendered.trace}
        assert traced == case["trace"]


@pytest.mark.parametrize("case", ALL, ids=[name_of(case) for case in ALL])
def test_the_problems_of_all_are_found_without_rendering(case: Case) -> None:
    inputs = inputs_of(fleet_of_case(case))
    assert problems_in(inputs) == render_all(inputs).problems


def test_rules_are_quiet_where_nothing_can_be_said_of_them() -> None:
    quiet: set[str] = set()
    for case in ALL:
        fleet = fleet_of_case(case)
        template = fleet.templates[subject(fleet.templates, case)]
        rules = inputs_of(fleet).overrides.rules_of(template)
        if are_quiet(rules, images_of(template, BUILT_IN_KINDS)):
            assert "error" not in case
            assert not case.get("warnings")
            quiet.update(step.field for rule in rules for step in rule.steps)
    assert quiet == {"image", "labels", "annotations"}


@pytest.mark.parametrize("case", ALL, ids=[name_of(case) for case in ALL])
def test_what_quiet_rules_change_is_told_as_applying_them_would(case: Case) -> None:
    fleet = fleet_of_case(case)
    template = fleet.templates[subject(fleet.templates, case)]
    interpreter = BUILT_IN_KINDS.of(*template.identity[:2])
    for rules in itertools.chain.from_iterable(
        [of_all, *((rule,) for rule in of_all)] for of_all in [inputs_of(fleet).overrides.rules_of(template)]
    ):
        images = images_of(template, BUILT_IN_KINDS)
        changing = changing_quietly(rules, images)
        if changing is not None or are_quiet(rules, images):
            applied = apply_rules(template.body, template.identity, rules, interpreter)
            assert not applied.problems
            assert apply_quiet_rules(template.body, rules, interpreter) == applied.body
            assert changing is None or changing == applied.rules


def test_an_image_rule_is_one_of_those_that_are_told_without_applying_them() -> None:
    told = [
        changing_quietly(inputs_of(fleet).overrides.rules_of(template), images_of(template, BUILT_IN_KINDS))
        for case in ALL
        for fleet in [fleet_of_case(case)]
        for template in [fleet.templates[subject(fleet.templates, case)]]
    ]
    assert any(told)
    assert None in told
