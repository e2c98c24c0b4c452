"""Overrides that fail, in whole rounds. Source: design#failed-override: the copy on that cluster stays as it is."""

from __future__ import annotations

from typing import Any

from reconciler.api.refs import Identity
from reconciler.report.plan import plan_text
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

APP = Identity("", "ConfigMap", "demo", "app")


def override(cluster: str, path: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {"overrideRules": [{"targetCluster": {"clusterNames": [cluster]}, "overriders": {
            "plaintext": [{"path": path, "operator": "replace", "value": "x"}]}}]},
    }  # fmt: skip


def test_a_copy_whose_override_fails_stays_as_it_is_and_the_error_has_file_and_line() -> None:
    bed = TestBed()
    rule = policy("ConfigMap", "m1", "m2", preserveResourcesOnDeletion=False)
    bed.run(fleet_of(config_map(a="1"), rule))
    planned = bed.run(fleet_of(config_map(a="2"), rule, override("m1", "/data/typo")))
    assert {cluster: bed.objects[cluster][APP].body["data"] for cluster in ("m1", "m2")} == {
        "m1": {"a": "1"},
        "m2": {"a": "2"},
    }
    (error,) = [problem for problem in planned.plan.problems if problem.severity == "error"]
    assert (error.cluster, error.source.path, error.source.line > 1) == ("m1", "all.yaml", True)
    assert "/data/typo" in error.message


def test_the_plan_tells_the_replicas_that_an_override_makes() -> None:
    override = {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "less", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                 "overrideRules": [
                     {"targetCluster": {"clusterNames": ["m1"]},
                      "overriders": {"plaintext": [{"operator": "replace", "path": "/spec/replicas", "value": 1}]}},
                     {"targetCluster": {"clusterNames": ["m2"]},
                      "overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}},
                 ]},
    }  # fmt: skip
    bed = TestBed()
    plan = bed.plan(fleet_of(deployment(replicas=3), policy("Deployment", "m1", "m2"), override)).plan
    (placed,) = (found for found in plan.placements if found.identity.kind == "Deployment")
    assert dict(placed.after) == {"m1": 3, "m2": 3}
    assert dict(placed.overridden) == {"m1": 1}
    assert "an override makes it m1 1" in plan_text(plan)
    plain = bed.plan(fleet_of(deployment(replicas=3), policy("Deployment", "m1", "m2"))).plan
    assert not any(found.overridden for found in plain.placements)
