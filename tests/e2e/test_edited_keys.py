"""Entries of lists whose key a person edits on a real cluster: set back by one apply, told as drift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.command_line import CommandLine
from tests.e2e.fleet_on_clusters import FleetOnClusters

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    made = FleetOnClusters(tmp_path, three_clusters)
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": made.namespace},
               "spec": {"selector": {"app": "web"}, "ports": ports}}  # fmt: skip
    made.write("service", service, made.policy("service", "Service", clusters=["m1"], selects="web"))
    made.write("web", made.deployment("web", replicas=0), made.policy("web", "Deployment", clusters=["m1"]))
    made.apply()
    return made


def edit(fleet: FleetOnClusters, kind: str, **operations: Any) -> None:
    """Replace values by their JSON pointers; a pointer that ends in a dash adds an entry."""
    patch = [
        {"op": "add" if pointer.endswith("-") else "replace", "path": pointer, "value": value}
        for pointer, value in operations.items()
    ]
    fleet.clusters["m1"].kubectl(
        "patch", kind, "web", "-n", fleet.namespace, "--type=json", "-p", json.dumps(patch),
        "--field-manager=kubectl-edit",
    )  # fmt: skip


def ports(fleet: FleetOnClusters) -> list[tuple[int, Any]]:
    live = fleet.live("m1", "service", "web")
    assert live is not None
    return [(port["port"], port["targetPort"]) for port in live["spec"]["ports"]]


@pytest.mark.parametrize("edited", [{"port": 81}, {"port": 81, "targetPort": 8081}], ids="+".join)
def test_the_port_of_a_service_is_set_back_whatever_else_was_edited(
    fleet: FleetOnClusters, edited: dict[str, int]
) -> None:
    edit(fleet, "service", **{f"/spec/ports/0/{name}": value for name, value in edited.items()})
    (change,) = fleet.plan().changes
    assert {str(field.cause) for field in change.fields} == {"drift"}
    assert [field.path for field in change.fields] == [
        "spec.ports[port=80,protocol=TCP]", "spec.ports[port=81,protocol=TCP]",
    ]  # fmt: skip
    fleet.apply()
    assert ports(fleet) == [(80, 8080)]
    assert fleet.plan().changes == ()
    assert "drift" in CommandLine(fleet).done("history", "service/web", "-n", fleet.namespace)


def test_a_renamed_container_goes_and_one_that_was_added_stays(fleet: FleetOnClusters) -> None:
    containers = "/spec/template/spec/containers"
    edit(fleet, "deployment", **{f"{containers}/-": {"name": "sidecar", "image": "envoy:1"}})
    assert fleet.plan().changes == ()
    edit(fleet, "deployment", **{f"{containers}/0/name": "renamed"})
    fleet.apply()
    live = fleet.live("m1", "deployment", "web")
    assert live is not None
    assert {found["name"] for found in live["spec"]["template"]["spec"]["containers"]} == {"main", "sidecar"}
    assert fleet.plan().changes == ()
