"""One connection to a real API server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.apiserver.requests_to import ApiServer
from tests.apiserver.wishes import CRD
from tests.real_clusters import RealCluster, wait_until


@pytest.fixture(scope="session")
def server(real_cluster: RealCluster) -> Iterator[ApiServer]:
    """A connection to an API server that serves the test's custom kind."""
    with closing(ApiServer(real_cluster.kubeconfig)) as connection:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        connection.apply(f"{definitions}/{CRD['metadata']['name']}", CRD, "test-set-up")

        def is_established() -> bool:
            live = connection.get(f"{definitions}/{CRD['metadata']['name']}")
            conditions = live.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        wait_until(is_established, "the custom kind to be established")
        yield connection
