"""Objects of other tools on real clusters: refused by name, taken over when it is named, ours from then on.

The tools are not here: the objects are written as they write them, with their field managers. Only ApplySets are made
by the tool itself, which is kubectl.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.plan import Action, Plan
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters, of_action

pytestmark = pytest.mark.apiserver

TAKE_OVER = "fleet.reconciler/take-over"


def owner(api_version: str, kind: str, **more: object) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u-1", **more}]}


# By the name of the object: the tool, its field manager, whether it applies on the server's side, and what it writes.
HELD: Mapping[str, tuple[str, str, bool, dict[str, Any]]] = {
    "kapp": ("kapp", "kapp", False, {
        "labels": {"kapp.k14s.io/app": "16105", "kapp.k14s.io/association": "v1.03"},
        "annotations": {"kapp.k14s.io/identity": "v1;demo//ConfigMap/kapp;v1"}}),
    "kluctl": ("kluctl", "kluctl", True, {
        "labels": {"kluctl.io/discriminator": "web", "kluctl.io/tag-0": "web"},
        "annotations": {"kluctl.io/deployment-item-dir": "web"}}),
    "config-sync": ("Config Sync", "configsync", True, {
        "labels": {"app.kubernetes.io/managed-by": "configmanagement.gke.io", "applyset.kubernetes.io/part-of": "x"},
        "annotations": {"configmanagement.gke.io/managed": "enabled", "config.k8s.io/owning-inventory": "r"}}),
    "kpt": ("cli-utils", "kubectl", True, {"annotations": {"config.k8s.io/owning-inventory": "8186"}}),
    "sveltos": ("Sveltos", "application/apply-patch", True, {
        "annotations": {"projectsveltos.io/owner-kind": "ClusterProfile", "projectsveltos.io/owner-name": "web"}}),
    "ocm": ("Open Cluster Management", "work-agent", True,
            owner("work.open-cluster-management.io/v1", "AppliedManifestWork")),
    "kubefleet": ("KubeFleet", "work-api-agent", True,
                  owner("placement.kubernetes-fleet.io/v1beta1", "AppliedWork", blockOwnerDeletion=False)),
    "sealed": ("SealedSecret o", "controller", False, owner("bitnami.com/v1alpha1", "SealedSecret", controller=True)),
}  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    found = FleetOnClusters(tmp_path, three_clusters)
    found.clusters["m1"].kubectl("create", "namespace", found.namespace)
    return found


def put(fleet: FleetOnClusters, name: str) -> None:
    """The object as its tool writes it, with a field that no template has."""
    _, manager, is_applied, metadata = HELD[name]
    body = fleet.config_map(name, of="them", extra="theirs")
    body["metadata"].update(metadata)
    if is_applied:
        fleet.clusters["m1"].apply(body, manager=manager)
    else:
        fleet.clusters["m1"].kubectl("create", f"--field-manager={manager}", "-f", "-", stdin=json.dumps(body))


def write(fleet: FleetOnClusters, names: Mapping[str, str]) -> None:
    """Templates of these names, each with whom it takes over from where that is not empty."""
    templates = []
    for name, take_over in names.items():
        template = fleet.config_map(name, of="us")
        if take_over:
            template["metadata"]["annotations"] = {TAKE_OVER: take_over}
        templates.append(template)
    policies = [fleet.policy(name, "ConfigMap", clusters=["m1"], conflictResolution="Overwrite") for name in names]
    fleet.write("app", *templates, *policies)


def refused(plan: Plan) -> dict[str, str]:
    """Return what is refused because it is somebody else's: why, by the name of the object."""
    found = [problem for problem in plan.problems if problem.code == "object-of-another-tool"]
    return {name: problem.message for problem in found for name in (*HELD, "app") if f"/{name} " in problem.message}


def test_what_a_tool_holds_is_refused_by_name_taken_over_by_name_and_ours_afterwards(fleet: FleetOnClusters) -> None:
    for name in HELD:
        put(fleet, name)
    write(fleet, dict.fromkeys(HELD, ""))
    said = refused(fleet.apply().round.plan)
    assert {name: f"belongs to {HELD[name][0]}" in said[name] for name in HELD} == dict.fromkeys(HELD, True)
    assert all(live(fleet, name)["data"]["of"] == "them" for name in HELD)

    write(fleet, {name: held[0] for name, held in HELD.items()})
    (brought,) = [change for change in fleet.plan().changes if change.identity.name == "ocm"]
    assert "metadata.ownerReferences" in {field.path.partition("[")[0] for field in brought.fields}, (
        "it is shown before"
    )
    plan = fleet.apply().round.plan
    assert (refused(plan), len(of_action(plan, Action.ADOPT))) == ({}, len(HELD))
    data = {name: live(fleet, name)["data"] for name in HELD}
    # What an unknown controller wrote is not ours to take away.
    assert data == {name: {"of": "us", **({"extra": "theirs"} if name == "sealed" else {})} for name in HELD}

    # The annotation is of no more use: nothing is refused, and what the tools wrote is gone with the field managers.
    write(fleet, dict.fromkeys(HELD, ""))
    plan = fleet.apply().round.plan
    assert refused(plan) == {}
    assert [problem.code for problem in plan.problems if problem.severity != "hint"] == []
    assert fleet.plan().changes == ()
    for name in HELD:
        metadata = live(fleet, name)["metadata"]
        left = {*metadata.get("labels", {}), *metadata.get("annotations", {})}
        assert not {key for key in left if not key.startswith("fleet.reconciler/")}, name
        assert bool(metadata.get("ownerReferences")) == (name == "sealed"), name


def test_a_member_of_an_apply_set_is_refused_by_name_and_taken_over(fleet: FleetOnClusters) -> None:
    apply_set(fleet, "app", "other")
    assert "applyset.kubernetes.io/part-of" in live(fleet, "app")["metadata"]["labels"]
    write(fleet, {"app": ""})
    assert "belongs to ApplySet" in refused(fleet.apply().round.plan)["app"]
    write(fleet, {"app": "ApplySet"})
    assert len(of_action(fleet.apply().round.plan, Action.ADOPT)) == 1
    taken = live(fleet, "app")
    assert taken["data"] == {"of": "us"}
    assert "applyset.kubernetes.io/part-of" not in taken["metadata"]["labels"]
    # Who is no member any more is not pruned when the set is applied without it.
    apply_set(fleet, "other")
    assert live(fleet, "app")["metadata"]["uid"] == taken["metadata"]["uid"]
    assert fleet.plan().changes == ()


def live(fleet: FleetOnClusters, name: str) -> dict[str, Any]:
    found = fleet.live("m1", "configmap", name)
    assert found is not None
    return found


def apply_set(fleet: FleetOnClusters, *names: str) -> None:
    """`kubectl apply --prune --applyset` of these."""
    bodies = [fleet.config_map(name, of="them", extra="theirs") for name in names]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    fleet.clusters["m1"].kubectl("apply", "-n", fleet.namespace, "--prune", "--applyset=web", "-f", "-", stdin=text)
