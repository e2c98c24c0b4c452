"""The member cluster that contract tests run against. The same tests hold for every implementation in `FACES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from reconciler.adapters.kube_client import MemberCluster
from reconciler.adapters.kube_members import Members, UserAgent
from reconciler.adapters.kubeconfig import load_members
from reconciler.model.cluster import Cluster
from tests.real_clusters import RealCluster

FLEET = "contract"
FACES = [pytest.param("real", marks=pytest.mark.apiserver)]

Connect = Callable[[], AbstractAsyncContextManager[MemberCluster]]
"""Opens the member cluster in the event loop of the test."""


@asynccontextmanager
async def connect(kubeconfig: Path, name: str) -> AsyncIterator[MemberCluster]:
    """The member of that name through the adapter."""
    configs = load_members(kubeconfig, [Cluster(name=name)])
    async with Members.open(configs, agent=UserAgent(FLEET, "c0ffee")) as members:
        yield members[name]


@pytest.fixture(params=FACES)
def cluster(request: pytest.FixtureRequest) -> RealCluster:
    """The cluster behind `member`, for preparing and for asking without the adapter."""
    assert request.param == "real"
    found = request.getfixturevalue("real_cluster")
    assert isinstance(found, RealCluster)
    return found


@pytest.fixture
def member(cluster: RealCluster) -> Connect:
    """How a test gets at the member cluster: `async with member() as it`."""
    return lambda: connect(cluster.kubeconfig, cluster.name)


@pytest.fixture
def namespace(cluster: RealCluster) -> str:
    """A namespace of the test's own."""
    return cluster.new_namespace()
