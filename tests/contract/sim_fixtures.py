"""Fixtures for the contract of the embedded clusters: the same tests on an embedded and on a real cluster."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, NodeSpec, background_fleet
from tests.contract.sim_sides import Side
from tests.real_clusters import RealCluster, wait_until

NODE = "sim-contract"
TAINT = ("contract", "sim", "NoSchedule")
TOLERATION = {"key": "contract", "operator": "Equal", "value": "sim", "effect": "NoSchedule"}
"""Only pods of these tests run on the node of these tests."""


@pytest.fixture(scope="session")
def sim_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    """One embedded cluster whose time runs ten times as fast."""
    node = NodeSpec(name=NODE, cpu="4", memory="8Gi", taints=(TAINT,))
    folder = tmp_path_factory.mktemp("fleet")
    with background_fleet([ClusterSpec(name="m1", nodes=(node,))], folder, speed=10.0) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def sim_side(sim_fleet: BackgroundFleet) -> Side:
    """The embedded cluster."""
    return Side("sim", sim_fleet.kubeconfig)


@pytest.fixture(scope="session")
def real_side(real_cluster: RealCluster) -> Side:
    """The real cluster."""
    key, value, effect = TAINT
    real_cluster.add_node(NODE, cpu="4", memory="8Gi", taints=[{"key": key, "value": value, "effect": effect}])
    return Side("real", real_cluster.kubeconfig)


@pytest.fixture(params=["sim", pytest.param("real", marks=pytest.mark.apiserver)])
def side(request: pytest.FixtureRequest) -> Side:
    """Each of the two."""
    found = request.getfixturevalue(f"{request.param}_side")
    assert isinstance(found, Side)
    return found


@pytest.fixture
def space(side: Side) -> str:
    """A namespace of the test's own."""
    return new_space(side)


def new_space(side: Side) -> str:
    """Create a namespace and wait until it is furnished."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert side.send("POST", "/api/v1/namespaces", body).status == 201
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: side.get(account).status == 200, f"namespace {name} to have its service account")
    return name
