"""An object that is not ours is never changed under Abort, nor deleted ever; the audit log is the referee."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.api.plan import Action
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters, of_action, writes_to
from tests.present import present

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    return FleetOnClusters(tmp_path, three_clusters)


def put_foreign(fleet: FleetOnClusters, **metadata: object) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fleet.namespace}}
    foreign = fleet.config_map("app", owner="them", extra="theirs")
    foreign["metadata"].update(metadata)
    fleet.clusters["m1"].apply(namespace, foreign)


def test_abort_leaves_an_object_that_is_not_ours(fleet: FleetOnClusters) -> None:
    put_foreign(fleet)
    fleet.write(
        "app", fleet.config_map("app", owner="us"), fleet.policy("app", "ConfigMap", keep=False, clusters=["m1"])
    )
    since = fleet.clusters["m1"].mark()
    plan = fleet.apply().round.plan
    assert [problem.code for problem in plan.problems if problem.severity == "error"] == ["object-not-ours"]
    fleet.write("app")
    fleet.apply()
    assert [line for line in writes_to(fleet.clusters["m1"], since) if "app" in line.split()] == []
    assert present(fleet.live("m1", "configmap", "app"))["data"] == {"owner": "them", "extra": "theirs"}


def test_overwrite_adopts_and_then_owns(fleet: FleetOnClusters) -> None:
    put_foreign(fleet)
    policy = fleet.policy("app", "ConfigMap", clusters=["m1"], conflictResolution="Overwrite")
    fleet.write("app", fleet.config_map("app", owner="us"), policy)
    plan = fleet.apply().round.plan
    assert len(of_action(plan, Action.ADOPT)) == 1
    assert present(fleet.live("m1", "configmap", "app"))["data"]["owner"] == "us"
    assert fleet.plan().changes == ()


def test_renamed_fleet_keeps_its_objects_and_can_still_remove_fields(fleet: FleetOnClusters) -> None:
    fleet.write("app", fleet.config_map("app", a="1", b="2"), fleet.policy("app", "ConfigMap", clusters=["m1"]))
    fleet.apply()
    before = fleet.live("m1", "configmap", "app")
    name = f"{fleet.fleet}-new"
    fleet.write("fleet", {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": name},
                          "spec": {"previousNames": [fleet.fleet]}})  # fmt: skip
    fleet.write("app", fleet.config_map("app", a="1"), fleet.policy("app", "ConfigMap", clusters=["m1"]))
    fleet.apply()
    after = present(fleet.live("m1", "configmap", "app"))
    assert before is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["data"] == {"a": "1"}
    assert after["metadata"]["labels"]["fleet.reconciler/fleet"] == name
    assert fleet.plan().changes == ()


def test_pull_secrets_that_a_controller_adds_are_left(fleet: FleetOnClusters) -> None:
    def account(*names: str) -> dict[str, object]:
        secrets = [{"name": name} for name in names]
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app", "namespace": fleet.namespace},
                "imagePullSecrets": secrets, "secrets": secrets}  # fmt: skip

    def pulls() -> list[str]:
        live = present(fleet.live("m1", "serviceaccount", "app"))
        return [entry["name"] for entry in live.get("imagePullSecrets", [])]

    def add(field: str, name: str) -> None:
        patch = [{"op": "add", "path": f"/{field}/-", "value": {"name": name}}]
        fleet.clusters["m1"].kubectl("patch", "serviceaccount", "app", "-n", fleet.namespace, "--type=json",
                                     "--field-manager=registry", "-p", json.dumps(patch))  # fmt: skip

    fleet.write("app", account("a", "b"), fleet.policy("app", "ServiceAccount", clusters=["m1"]))
    fleet.apply()
    add("imagePullSecrets", "registry")
    add("secrets", "registry-token")
    assert fleet.plan().changes == ()
    fleet.write("app", account("c", "b"), fleet.policy("app", "ServiceAccount", clusters=["m1"]))
    fleet.apply()
    assert sorted(pulls()) == ["b", "c", "registry"]
    assert fleet.plan().changes == ()
    add("imagePullSecrets", "another")
    assert fleet.plan().changes == ()
