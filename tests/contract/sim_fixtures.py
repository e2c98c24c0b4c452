"""Fixtures for the contract of the embedded clusters: the same tests on an embedded and on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, NodeSpec, background_fleet
from tests.contract.sim_sides import NODE, TAINT, Side, new_space
from tests.real_clusters import RealCluster


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


@pytest.fixture(scope="module")
def real_side(real_cluster: RealCluster) -> Iterator[Side]:
    key, value, effect = TAINT
    real_cluster.add_node(NODE, cpu="4", memory="8Gi", taints=[{"key": key, "value": value, "effect": effect}])
    yield Side("real", real_cluster.kubeconfig)
    real_cluster.remove_node(NODE)


@pytest.fixture(params=["sim", pytest.param("real", marks=pytest.mark.apiserver)])
def side(request: pytest.FixtureRequest) -> Side:
    found = request.getfixturevalue(f"{request.param}_side")
    assert isinstance(found, Side)
    return found


@pytest.fixture
def space(side: Side) -> str:
    """A namespace of the test's own."""
    return new_space(side)
