"""One connection to a real API server for all tests of a file that diff."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.apiserver.requests_to import ApiServer
from tests.real_clusters import RealCluster


@pytest.fixture(scope="module")
def server(real_cluster: RealCluster) -> Iterator[ApiServer]:
    """A connection to the API server of the shared cluster; between two files it may have been stopped and started."""
    with closing(ApiServer(real_cluster.kubeconfig)) as connection:
        yield connection
