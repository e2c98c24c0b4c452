"""The schema check refuses a body exactly where an API server refuses to apply it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.refs import GVK
from reconciler.documents import body_faults, builtin_schema, repeated_entries
from tests.apiserver.requests_to import ApiServer, Body, Refused, path_of
from tests.apiserver.trial import MANAGER
from tests.real_clusters import RealCluster

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def namespace(real_cluster: RealCluster) -> str:
    """A namespace of this file's own."""
    return real_cluster.new_namespace("schema")


def deployment(namespace: str, pod: Body | None = None, **spec: Any) -> Body:
    labels = {"app": "a"}
    containers = [{"name": "c", "image": "i", **(pod or {})}]
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}, **spec},
    }  # fmt: skip


def config_map(namespace: str, data: Any, **fields: Any) -> Body:
    metadata = {"name": "m", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data, **fields}


DEPLOYMENTS: list[tuple[dict[str, Any], bool]] = [
    ({"replicas": "3"}, False),
    ({"replicas": True}, False),
    ({"replicas": 1.5}, False),
    ({"replicas": 3}, True),
    ({"replicas": None}, True),
    ({"paused": "true"}, False),
    ({"pod": {"envfrom": []}}, False),
    ({"pod": {"env": {"A": "1"}}}, False),
    ({"pod": {"env": [{"name": "A", "value": 1}]}}, False),
    ({"pod": {"env": None}}, True),
    ({"pod": {"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}}, True),
    ({"pod": {"resources": {"requests": {"cpu": True}}}}, False),
    ({"pod": {"env": [{"name": "A"}, {"name": "B"}, {"name": "A", "value": "1"}]}}, False),
    ({"pod": {"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]}}, True),
    ({"pod": {"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "TCP", "name": "x"}]}}, False),
    ({"pod": {"args": ["a", "a"]}}, True),
    ({"strategy": {"rollingUpdate": {"maxSurge": "25%"}}}, True),
    ({"strategy": {"rollingUpdate": {"maxSurge": 1}}}, True),
    ({"strategy": {"rollingUpdate": {"maxsurge": 1}}}, False),
]
MAPS: list[tuple[Any, dict[str, Any], bool]] = [
    ({"a": "1"}, {}, True),
    ({"a": 1}, {}, False),
    (["a"], {}, False),
    ({"a": "1"}, {"binarydata": {}}, False),
    ({"a": "1"}, {"immutable": "true"}, False),
    (None, {}, True),
]


@pytest.mark.parametrize(("fields", "fits"), DEPLOYMENTS, ids=str)
def test_deployment_is_refused_where_an_api_server_refuses_it(
    server: ApiServer, namespace: str, fields: dict[str, Any], fits: bool
) -> None:
    assert_judged_alike(server, deployment(namespace, **fields), fits)


@pytest.mark.parametrize(("data", "fields", "fits"), MAPS, ids=str)
def test_config_map_is_refused_where_an_api_server_refuses_it(
    server: ApiServer, namespace: str, data: Any, fields: dict[str, Any], fits: bool
) -> None:
    assert_judged_alike(server, config_map(namespace, data, **fields), fits)


def assert_judged_alike(server: ApiServer, body: Body, fits: bool) -> None:
    schema = builtin_schema(GVK.parse(body["apiVersion"], body["kind"]))
    assert schema is not None
    assert ([*body_faults(schema.root, body), *repeated_entries(schema.root, body)] == []) is fits
    if fits:
        server.apply(path_of(body), body, MANAGER, dry_run=True)
        return
    with pytest.raises(Refused):
        server.apply(path_of(body), body, MANAGER, dry_run=True)
