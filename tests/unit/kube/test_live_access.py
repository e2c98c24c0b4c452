"""Access as live profiles say it: the last that is known stays, whatever becomes of profile and management cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import Cluster
from reconciler.errors import ConfigurationError
from reconciler.kube import MemberConfig
from reconciler.kube.profile_access import LiveAccess
from reconciler.sim import BackgroundFleet, ClusterSpec, Fault, FaultKind, Request, background_fleet
from tests.fakes.profiles import DEFINITION, profile

PROFILES = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/clusterprofiles"
PROVIDERS = {"providers": [{"name": "cloud", "execConfig": {
    "apiVersion": "client.authentication.k8s.io/v1", "command": "token"}}]}  # fmt: skip
M1 = Cluster(name="m1", namespace="fleet")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name="hub")], tmp_path) as fleet:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fleet"}}
        send(fleet, "POST", "/api/v1/namespaces", namespace)
        send(fleet, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        fleet.call(lambda box: box["hub"].run_for(5))
        yield fleet


def send(fleet: BackgroundFleet, method: str, path: str, body: dict[str, Any] | None = None) -> None:
    answer = fleet.call(lambda box: box["hub"].request(Request(method=method, path=path, body=body)))
    assert answer.status < 300, answer


def put(fleet: BackgroundFleet, name: str, server: str, **status: Any) -> None:
    access = {"accessProviders": [{"name": "cloud", "cluster": {"server": server}}]}
    send(fleet, "POST", PROFILES, profile(name, status={**access, **status}))


def access(hub: BackgroundFleet, folder: Path, place: str = "hub/fleet") -> LiveAccess:
    (folder / "providers.json").write_text(json.dumps(PROVIDERS))
    return LiveAccess(place, folder / "providers.json", hub.kubeconfig)


def server(found: LiveAccess, cluster: Cluster = M1) -> str:
    config = found.configs([cluster])[cluster.name]
    return config.server if isinstance(config, MemberConfig) else str(config)


def refresh(found: LiveAccess) -> bool:
    return asyncio.run(found.refresh("shop"))


def test_a_profile_that_vanishes_keeps_its_access(hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "m1", "https://one.example")
    found = access(hub, tmp_path)
    assert "were not read yet" in server(found)
    assert refresh(found) and server(found) == "https://one.example"
    assert not refresh(found) and found.remarks(M1) == ()
    send(hub, "DELETE", f"{PROFILES}/m1")
    assert refresh(found) and server(found) == "https://one.example"
    assert found.remarks(M1) == ("its ClusterProfile is gone from hub/fleet; the last access known is used",)
    put(hub, "m1", "https://two.example")
    assert refresh(found) and server(found) == "https://two.example"


@pytest.mark.parametrize("kind", [FaultKind.FORBIDDEN, FaultKind.HTML, FaultKind.TRUNCATED])
def test_a_management_cluster_that_is_away_changes_nothing(
    hub: BackgroundFleet, tmp_path: Path, kind: FaultKind
) -> None:
    put(hub, "m1", "https://one.example")
    found = access(hub, tmp_path)
    refresh(found)
    put(hub, "m2", "https://two.example")
    hub.call(lambda box: box.servers["hub"].faults.order(Fault(kind=kind), times=1000))
    assert not refresh(found) and found.fault
    assert server(found) == "https://one.example" and "the last access known is used" in found.remarks(M1)[0]
    assert "cannot be read" in server(found, Cluster(name="m2", namespace="fleet"))
    hub.call(lambda box: box.servers["hub"].faults.clear())
    assert refresh(found) and not found.fault and found.remarks(M1) == ()


def test_only_the_profile_that_a_document_names_counts(hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "m1", "https://one.example")
    found = access(hub, tmp_path, place="hub")
    refresh(found)
    assert "is not there" in server(found, Cluster(name="m1", namespace="tenant"))
    assert server(found, Cluster(name="hub")).startswith("http://127.0.0.1")
    assert server(found, Cluster(name="m1", namespace="fleet", context="hub")).startswith("http://127.0.0.1")


def test_a_provider_file_that_is_broken_later_keeps_the_old_one(hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "m1", "https://one.example")
    found = access(hub, tmp_path)
    refresh(found)
    (tmp_path / "providers.json").write_text("{")
    assert not refresh(found) and "is no JSON" in found.fault
    assert server(found) == "https://one.example"
    with pytest.raises(ConfigurationError, match="is no JSON"):
        LiveAccess("hub", tmp_path / "providers.json", hub.kubeconfig)


def test_an_unhealthy_control_plane_is_told_and_is_not_gone(hub: BackgroundFleet, tmp_path: Path) -> None:
    put(hub, "m1", "https://one.example", conditions=[
        {"type": "ControlPlaneHealthy", "status": "False", "message": "etcd is full"}])  # fmt: skip
    found = access(hub, tmp_path)
    refresh(found)
    assert found.remarks(M1) == ("its profile says that the control plane is not healthy: etcd is full",)
    assert server(found) == "https://one.example"
