"""Annotations of a plan: the sum first, since few are shown, then what is lost."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given, settings

from reconciler.api.plan import Plan
from reconciler.report.plan.annotations import plan_annotations
from tests.golden.hostile_plans import plans
from tests.golden.plans import ordinary_plan
from tests.golden.pulls import PULLS, fleet_wide_bump, released_team

COMMAND = re.compile(r"::(error|warning|notice)(?: (?:\w+=[^,:]*,?)+)?::[^\n]*")


@settings(max_examples=40)
@given(plans())
def test_every_line_is_one_annotation(plan: Plan) -> None:
    lines = plan_annotations(plan).splitlines()
    assert lines
    for line in lines:
        assert COMMAND.fullmatch(line)
        assert line.isprintable()
        assert "##[" not in line


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("nothing", "notice"),
        ("own-images", "notice"),
        ("fleet-wide-bump", "warning"),
        ("released-team", "warning"),
        ("broken-file", "error"),
        ("unreadable-cluster", "error"),
        ("without-observations", "error"),
    ],
)
def test_the_first_one_is_the_sum(name: str, severity: str) -> None:
    first = plan_annotations(PULLS[name]()).splitlines()[0]
    assert first.startswith(f"::{severity} title=Fleet plan::")


def test_the_sum_says_in_words_what_happens_and_names_all_that_is_lost() -> None:
    first = unquote(plan_annotations(fleet_wide_bump()).splitlines()[0])
    assert "5,000 Deployments in 10 clusters: image nginx:1.27 → 1.28; 50 deletions held by the guard" in first
    assert "edge-9: demo/old-{9,19,29,39,49}" in first
    assert "spec.guards.confirm: 8c1f0a6be21d4477" in first
    released = unquote(plan_annotations(released_team()).splitlines()[0])
    assert all(f"{one.identity.name.rpartition('-')[2]}" in released for one in released_team().changes)


def test_what_is_lost_comes_before_what_is_wrong_and_before_what_changes() -> None:
    lines = plan_annotations(ordinary_plan()).splitlines()
    titles = [re.findall("title=([^,:]*)", line)[0] for line in lines]
    assert titles == [
        "Fleet plan",
        "delete ConfigMap",
        "release ConfigMap",
        "delete Deployment",
        "delete PersistentVolumeClaim",
        "object-not-ours",
        "affinity-matches-nothing",
        "update ConfigMap",
        "adopt ConfigMap",
        "create Deployment",
        "update Deployment",
        "update Secret",
    ]
