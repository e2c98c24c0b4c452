"""Updates that an API server does not make in place, of kinds that no table knows: held as replacements, told once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.plan import Action
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import ACK, FleetOnClusters, writes_to

pytestmark = pytest.mark.apiserver

GROUP = "notinplace.fleet.example"
RULES = [{"rule": "self.size == oldSelf.size", "message": "the size stays"}]
SPEC = {"type": "object", "x-kubernetes-validations": RULES,
        "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"discs.{GROUP}"},
    "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "discs", "kind": "Disc"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {"spec": SPEC}}}}]},
}  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    return FleetOnClusters(tmp_path, three_clusters)


def write(fleet: FleetOnClusters, spec: dict[str, Any], **annotations: str) -> None:
    """The definition and an object of its kind, in m1."""
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
    selectors = [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}]
    metadata = {"name": "disc", "namespace": fleet.namespace, "annotations": annotations}
    disc = {"apiVersion": f"{GROUP}/v1", "kind": "Disc", "metadata": metadata, "spec": spec}
    fleet.write(
        "discs",
        DEFINITION,
        {"apiVersion": ACK, "kind": "ClusterPropagationPolicy", "metadata": {"name": "definitions"},
         "spec": {"resourceSelectors": selectors, "placement": placement}},
        disc,
        {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": "discs", "namespace": fleet.namespace},
         "spec": {"resourceSelectors": [{"apiVersion": f"{GROUP}/v1", "kind": "Disc"}], "placement": placement}},
    )  # fmt: skip


def test_a_rule_of_a_kind_makes_a_replacement_that_is_held_until_it_is_allowed(fleet: FleetOnClusters) -> None:
    write(fleet, {"size": 1, "colour": "red"})
    fleet.apply()
    write(fleet, {"size": 1, "colour": "blue"})
    fleet.apply()
    assert fleet.plan().changes == ()
    write(fleet, {"size": 2, "colour": "blue"})
    plan = fleet.plan()
    (change,) = plan.changes
    assert change.action is Action.REPLACE
    assert "spec cannot be changed in place" in (change.held or "")
    assert [found.message for found in plan.problems if "the size stays" in found.message]
    since = fleet.clusters["m1"].mark()
    fleet.apply()
    assert [line for line in writes_to(fleet.clusters["m1"], since) if "discs" in line] in ([], ["patch discs disc"])
    write(fleet, {"size": 2, "colour": "blue"}, **{"fleet.reconciler/replace": "allowed"})
    fleet.apply()
    live = fleet.live("m1", f"discs.{GROUP}", "disc")
    assert live is not None
    assert live["spec"] == {"size": 2, "colour": "blue"}
    assert fleet.plan().changes == ()
    fleet.clusters["m1"].kubectl("delete", "crd", f"discs.{GROUP}")
