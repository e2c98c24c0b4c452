from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.documents import BUILT_IN, type_fault
from reconciler.documents.known_types import stable_versions
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy
from tests.unit.documents.bundled import bundled_types
from tests.yaml_text import load_yaml

CASES = load_yaml((Path(__file__).parents[2] / "cases/badinput/types.yaml").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["type"])
def test_tells_a_misspelt_type_from_a_custom_one(case: dict[str, Any]) -> None:
    fault = type_fault(*case["type"].split(" "))
    assert (fault.code if fault else None) == case.get("code")
    meant = fault.likely if fault else None
    assert (f"{meant.api_version} {meant.kind}" if meant else None) == case.get("meant")
    if fault is not None and meant is not None:
        assert f"did you mean {meant.kind}?" in fault.message or f"did you mean {meant.api_version}" in fault.message


def test_knows_every_type_that_the_bundled_schemas_have() -> None:
    for gvk in bundled_types():
        if gvk.group_kind in BUILT_IN:
            assert type_fault(gvk.api_version, gvk.kind) is None, gvk
            assert gvk.version in stable_versions(gvk.group)


DELETES: dict[str, Any] = {"preserveResourcesOnDeletion": False}
GOOD = policy("Deployment", "m1", **DELETES)
MISSPELT = {
    "a policy": [deployment(), {**GOOD, "kind": "PropogationPolicy"}],
    "the group of a policy": [deployment(), {**GOOD, "apiVersion": "policy.one.alibabaclod.com/v1alpha1"}],
    "the version of a policy": [deployment(), {**GOOD, "apiVersion": "policy.one.alibabacloud.com/v1aplha1"}],
    "the kind in a selector": [
        deployment(),
        {**GOOD, "spec": {**GOOD["spec"], "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deploymnet"}]}},
    ],
    "the kind of the workload": [{**deployment(), "kind": "Deploymnet"}, GOOD],
    "the version of the workload": [{**deployment(), "apiVersion": "apps/v1beta2"}, GOOD],
    "the group of the workload": [{**deployment(), "apiVersion": "extensions/v1beta1"}, GOOD],
    "no group of the workload": [{**deployment(), "apiVersion": "v1"}, GOOD],
    "a member": [
        deployment(),
        GOOD,
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Clutser", "metadata": {"name": "m1"}},
    ],
}


@pytest.mark.parametrize("case", MISSPELT)
def test_what_a_misspelt_type_might_mean_is_left_as_it_is(case: str) -> None:
    bed = TestBed()
    base = fleet_of(deployment(), GOOD)
    bed.run(base)
    clusters = ("m2", "m3") if case == "a member" else ("m1", "m2", "m3")
    head = fleet_of(*MISSPELT[case], clusters=clusters)
    assert [problem.code for problem in head.problems if problem.code.endswith("-unknown")]
    assert not head.is_complete
    of_workload = [c for c in bed.plan(head).plan.changes if c.identity.kind.startswith("Depl")]
    assert of_workload == []
    offline = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert [c for c in offline.changes if c.identity.kind.startswith("Depl")] == []
    assert not offline.is_complete


def test_misspelt_policy_freezes_what_it_selects_and_nothing_else() -> None:
    misspelt = {**GOOD, "kind": "PropogationPolicy"}
    bed = TestBed()
    fleet = fleet_of(deployment(), misspelt, config_map(), policy("ConfigMap", "m1", name="maps"))
    assert {c.identity.kind for c in bed.plan(fleet).plan.changes} == {"Namespace", "ConfigMap"}


def test_misspelt_cluster_policy_without_readable_selectors_freezes_everything() -> None:
    kind = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropogationPolicy"}
    misspelt = {**kind, "metadata": {"name": "p"}}
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1"), misspelt)
    assert TestBed().plan(fleet).plan.changes == ()
