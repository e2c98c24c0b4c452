"""Findings of `validate` in Rollouts beyond their own documents: clusters in no stage, templates of two Rollouts."""

from __future__ import annotations

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.problem import Severity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.lint import lint
from reconciler.rollouts import selected_of
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, deployment, fleet_of, policy
from tests.unit.planner.test_staged import CANARY, DEPLOYMENTS, REST, rollout

EMPTY = {"name": "none", "clusters": {"clusterNames": ["gone"]}}
CASES = {
    "all is well": ((rollout(),), []),
    "a cluster in no stage": ((rollout(CANARY),), ["rollout-cluster-in-no-stage"] * 2),
    "a cluster in two": (
        (rollout(CANARY, {**CANARY, "name": "again"}, REST),),
        ["rollout-cluster-in-two-stages"],
    ),
    "two that are alike": ((rollout(), rollout(name="other")), ["rollout-template-tied"]),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_of_rollouts(case: str) -> None:
    rollouts, codes = CASES[case]
    fleet = fleet_of(deployment(), DEPLOYMENTS, *rollouts)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    found = lint(fleet, schedule.claims, BUILT_IN_KINDS, (), selected_of(schedule))
    rollout_codes = [one.code for one in found if one.code.startswith("rollout-") and one.severity is Severity.ERROR]
    assert rollout_codes == codes


def test_the_most_specific_rollout_counts_as_the_policy_governs() -> None:
    """A Rollout that names the policy takes the template from one that names its namespace."""
    by_policy = rollout(name="other", templates={"policies": ["demo/app"]})
    fleet = fleet_of(deployment(), policy("Deployment"), rollout(), by_policy)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert set(selected_of(schedule).rollouts.values()) == {("other",)}
    assert not selected_of(schedule).problems


def test_an_empty_stage_is_a_warning() -> None:
    fleet = fleet_of(deployment(), DEPLOYMENTS, rollout(EMPTY, REST))
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    found = lint(fleet, schedule.claims, BUILT_IN_KINDS, (), selected_of(schedule))
    assert ("rollout-stage-empty", Severity.WARNING) in {(one.code, one.severity) for one in found}
