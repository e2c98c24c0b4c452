"""Overrides that fail, in whole rounds. Source: design#failed-override: the copy on that cluster stays as it is."""

from __future__ import annotations

from typing import Any

from reconciler.model.refs import Identity
from tests.fakes.worlds import TestBed, config_map, fleet_of, policy

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
