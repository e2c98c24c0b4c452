"""The claim of a template from one commit to the next, in whole rounds. Source: design#claim: computed again."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.plan import Action, Cause
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy


def labelled(**labels: str) -> dict[str, Any]:
    template = config_map(a="1")
    template["metadata"]["labels"] = labels
    return template


@pytest.mark.parametrize(("keep", "expected"), [(True, Action.RELEASE), (False, Action.DELETE)])
def test_a_template_that_loses_the_label_which_a_policy_selects_is_let_go(keep: bool, expected: Action) -> None:
    rule = policy("ConfigMap", "m1", preserveResourcesOnDeletion=keep)
    rule["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"tier": "web"}}
    bed = TestBed()
    bed.run(fleet_of(labelled(tier="web"), rule))
    (change,) = (c for c in bed.plan(fleet_of(labelled(), rule)).plan.changes if c.identity.kind == "ConfigMap")
    assert (change.action, change.cause, change.cluster) == (expected, Cause.POLICY, "m1")


@pytest.mark.parametrize(("keep", "expected"), [(True, Action.RELEASE), (False, Action.DELETE)])
def test_what_nothing_refers_to_any_more_is_let_go_as_no_longer_needed(keep: bool, expected: Action) -> None:
    rule = policy("Deployment", "m1", propagateDeps=True, preserveResourcesOnDeletion=keep)
    needs = deployment()
    needs["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "app"}}]
    bed = TestBed()
    bed.run(fleet_of(needs, config_map(), rule))
    (change,) = (c for c in bed.plan(fleet_of(deployment(), config_map(), rule)).plan.changes if c.action is expected)
    assert (change.identity.kind, change.cause, change.cluster) == ("ConfigMap", Cause.DEPENDENCY, "m1")
