"""The member cluster that contract tests run against. The same tests hold for every implementation in `FACES`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from reconciler.api.clusters import Cluster
from reconciler.kube import MemberCluster, MemberClusters, UserAgent, load_members
from reconciler.sim import ClusterSpec, background_fleet
from tests.contract.sim_cluster import SimCluster
from tests.real_clusters import RealCluster

FLEET = "contract"
SIMULATOR_PAGE = Path(__file__).parents[2] / "docs/reference/simulator.md"
FACES = ["sim", pytest.param("real", marks=pytest.mark.apiserver)]

Connect = Callable[[], AbstractAsyncContextManager[MemberCluster]]
"""Opens the member cluster in the event loop of the test."""


def differences() -> dict[str, str]:
    """Tests and files of tests that do not hold on an embedded cluster, and what it does instead: the page says so."""
    _, _, table = SIMULATOR_PAGE.read_text().partition("| tests of the contract |")
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        for name in re.findall(r"`(test_\w+(?:\.py)?)`", cells[3] if len(cells) == 5 else ""):
            found[name] = cells[2]
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect of an embedded cluster what its page says of it; strictly, so that the page stays true."""
    known = differences()
    for item in items:
        if not isinstance(item, pytest.Function) or "cluster" not in item.fixturenames:
            continue
        spec = getattr(item, "callspec", None)
        if spec is None or spec.params.get("cluster") != "sim":
            continue
        if reason := known.get(item.path.name):
            item.add_marker(pytest.mark.skip(reason=f"an embedded cluster {reason}"))
        elif reason := known.get(item.originalname):
            item.add_marker(pytest.mark.xfail(reason=f"an embedded cluster {reason}", strict=True))


@asynccontextmanager
async def connect(kubeconfig: Path, name: str) -> AsyncIterator[MemberCluster]:
    """The member of that name through the adapter."""
    configs = load_members(kubeconfig, [Cluster(name=name)])
    async with MemberClusters.open(configs, agent=UserAgent(FLEET, "c0ffee")) as members:
        yield members[name]


@pytest.fixture(params=FACES)
def cluster(request: pytest.FixtureRequest) -> RealCluster:
    """The cluster behind `member`, for preparing and for asking without the adapter."""
    found = request.getfixturevalue(f"{request.param}_cluster")
    assert isinstance(found, RealCluster)
    return found


@pytest.fixture(scope="session")
def sim_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimCluster]:
    """One embedded cluster without nodes, shared by the session. Its time runs ten times as fast."""
    specs = [ClusterSpec(name="m1", nodes=())]
    with background_fleet(specs, tmp_path_factory.mktemp("sim"), speed=10.0) as fleet:
        yield SimCluster(fleet)


@pytest.fixture
def member(cluster: RealCluster) -> Connect:
    """Return the opener of the member cluster: `async with member() as it`."""
    return lambda: connect(cluster.kubeconfig, cluster.name)


@pytest.fixture
def namespace(cluster: RealCluster) -> str:
    """A namespace of the test's own."""
    return cluster.new_namespace()
