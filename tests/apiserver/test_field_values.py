"""Values that the table of fields refuses are refused by an API server, and the others are taken."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.apiserver.requests_to import ApiServer, Body, Refused, path_of
from tests.real_clusters import wait_until
from tests.unit.yaml_cases import changed_objects

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def server_of_pods(server: ApiServer) -> ApiServer:
    """An API server that takes pods: they need the service account of their namespace."""
    wait_until(lambda: server.has("/api/v1/namespaces/default/serviceaccounts/default"), "the service account")
    return server


@pytest.mark.parametrize(("body", "problems"), changed_objects())
def test_an_api_server_refuses_what_has_a_problem(server_of_pods: ApiServer, body: Body, problems: list[str]) -> None:
    collection = path_of(body).rpartition("/")[0]
    with pytest.raises(Refused) if problems else nullcontext():
        server_of_pods.request("POST", f"{collection}?dryRun=All", body)
