"""Adoption, taking over and release on a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.api.plan import MISSING
from reconciler.api.refs import GVK
from reconciler.diff import Difference
from reconciler.documents import builtin_schema
from reconciler.ownership import (
    FLEET_LABEL,
    OWNER_ANNOTATION,
    adopted,
    adoption_operations,
    release_operations,
    takeover_operations,
)
from reconciler.ownership.adoption import PREDECESSORS
from reconciler.ownership.managed_fields import managers_of
from tests.apiserver.requests_to import JSON_PATCH, STRATEGIC, ApiServer, Body, Refused, path_of
from tests.apiserver.trial import MANAGER, ordinary
from tests.engine_t import three_way
from tests.real_clusters import RealCluster

pytestmark = pytest.mark.apiserver

SCHEMA = builtin_schema(GVK("apps", "v1", "Deployment"))
PROBE = {"tcpSocket": {"port": 80}}


def deployment(namespace: str, name: str = "web", **container: Any) -> Body:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": "a"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1", **container}]},
            },
        },
    }


Operations = Callable[[Body], tuple[dict[str, Any], ...]]


def send(server: ApiServer, body: Body, operations: tuple[dict[str, Any], ...]) -> Body:
    return server.patch(path_of(body), list(operations), MANAGER, JSON_PATCH)


def patch(server: ApiServer, body: Body, operations_for: Operations) -> Body:
    """Read, patch, and begin again when a controller wrote in between."""
    for _ in range(20):
        try:
            return send(server, body, operations_for(server.get(path_of(body))))
        except Refused as refused:
            if refused.status != 409:
                raise
    raise AssertionError("the object never stood still")


@pytest.fixture
def namespace(real_cluster: RealCluster) -> str:
    """A namespace of the test's own."""
    return real_cluster.new_namespace("adopt")


def test_adopts_what_kubectl_applied_and_removes_what_the_store_does_not_hold(
    server: ApiServer, real_cluster: RealCluster, namespace: str
) -> None:
    wanted = deployment(namespace)
    foreign = deployment(namespace, livenessProbe=PROBE)
    foreign["metadata"]["labels"]["obsolete"] = "yes"
    real_cluster.kubectl("apply", "-f", "-", stdin=json.dumps(foreign))
    live = server.get(path_of(wanted))
    said = three_way(wanted, adopted(live, MANAGER), manager=MANAGER, schema=SCHEMA)
    assert [change.path for change in said.fields if change.after is MISSING] == [
        "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
        "metadata.labels.obsolete",
        "spec.template.spec.containers[name=web].livenessProbe",
    ]
    assert len(said.fields) == 3, "defaults are no difference"
    after_patch = patch(server, wanted, lambda now: adoption_operations(now, MANAGER))
    assert ordinary(after_patch) == ordinary(live)
    result = server.apply(path_of(wanted), wanted, MANAGER)
    assert result["metadata"]["labels"] == {"team": "a"}
    assert "livenessProbe" not in result["spec"]["template"]["spec"]["containers"][0]
    assert not managers_of(result, ("spec",)) - {MANAGER}
    assert three_way(wanted, result, manager=MANAGER, previous=wanted, schema=SCHEMA) == Difference()


def test_adopts_what_a_tool_created_without_changing_it(server: ApiServer, namespace: str) -> None:
    wanted = deployment(namespace)
    server.post(path_of(wanted).rsplit("/", 1)[0], wanted, manager="helm")
    live = server.get(path_of(wanted))
    patch(server, wanted, lambda now: adoption_operations(now, MANAGER))
    result = server.apply(path_of(wanted), wanted, MANAGER)
    assert result["spec"] == live["spec"]
    assert result["metadata"]["generation"] == live["metadata"]["generation"]
    assert "helm" not in managers_of(result, ("spec",))


def test_adoption_has_nothing_to_do_for_an_object_that_no_tool_wrote(server: ApiServer, namespace: str) -> None:
    wanted = deployment(namespace)
    live = server.apply(path_of(wanted), wanted, MANAGER)
    assert adoption_operations(live, MANAGER) == ()
    assert adopted(live, MANAGER) is live
    assert "kubectl-edit" not in PREDECESSORS, "an edit by hand is no declaration"


def test_every_patch_is_refused_when_the_object_changed_meanwhile(server: ApiServer, namespace: str) -> None:
    wanted = deployment(namespace)
    server.post(path_of(wanted).rsplit("/", 1)[0], wanted, manager="helm")
    old = server.get(path_of(wanted))
    server.patch(path_of(wanted), {"metadata": {"labels": {"x": "y"}}}, "kubectl-edit")
    before = server.get(path_of(wanted))
    for operations in (
        adoption_operations(old, MANAGER),
        takeover_operations(old, MANAGER, ["spec.replicas"]),
        release_operations(old, "helm"),
    ):
        assert operations
        with pytest.raises(Refused) as refused:
            send(server, wanted, operations)
        assert refused.value.status == 409
    after = server.get(path_of(wanted))
    assert ordinary(after) == ordinary(before)


def test_releases_an_object_as_it_is(server: ApiServer, namespace: str) -> None:
    body = deployment(namespace)
    body["metadata"]["labels"][FLEET_LABEL] = "test"
    body["metadata"]["annotations"] = {OWNER_ANNOTATION: "{}", "kept/by-us": "yes"}
    server.apply(path_of(body), body, MANAGER)
    server.patch(path_of(body), {"spec": {"minReadySeconds": 3}}, "kubectl-edit")
    live = server.get(path_of(body))
    result = patch(server, body, lambda now: release_operations(now, MANAGER))
    assert result["spec"] == live["spec"]
    assert result["metadata"]["uid"] == live["metadata"]["uid"]
    assert result["metadata"]["labels"] == {"team": "a"}
    assert result["metadata"]["annotations"]["kept/by-us"] == "yes"
    assert OWNER_ANNOTATION not in result["metadata"]["annotations"]
    assert MANAGER not in managers_of(result, ())
    assert managers_of(result, ("spec", "minReadySeconds")) == {"kubectl-edit"}
    assert release_operations(result, MANAGER) == ()


def test_releases_an_object_that_nobody_else_wrote(server: ApiServer, namespace: str) -> None:
    body: Body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": namespace, "labels": {FLEET_LABEL: "test"}},
        "data": {"a": "1"},
    }
    server.apply(path_of(body), body, MANAGER)
    result = patch(server, body, lambda now: release_operations(now, MANAGER))
    assert result["data"] == {"a": "1"}
    assert MANAGER not in managers_of(result, ())
    assert FLEET_LABEL not in (result["metadata"].get("labels") or {})


def test_takes_a_field_over_so_that_its_removal_brings_the_default_back_unowned(
    server: ApiServer, namespace: str
) -> None:
    body = deployment(namespace)
    server.apply(path_of(body), body, MANAGER)
    server.patch(f"{path_of(body)}/scale", {"spec": {"replicas": 5}}, "somebody")
    wanted = deployment(namespace)
    del wanted["spec"]["replicas"]
    live = server.get(path_of(body))
    assert server.apply(path_of(body), wanted, MANAGER, dry_run=True)["spec"]["replicas"] == 5, "apply alone leaves it"
    said = three_way(wanted, live, manager=MANAGER, previous=body, schema=SCHEMA)
    assert said.removed_paths == ("spec.replicas",)
    assert [(change.path, change.owner.manager if change.owner else "") for change in said.fields] == [
        ("spec.replicas", "somebody")
    ]
    patch(server, body, lambda now: takeover_operations(now, MANAGER, said.removed_paths))
    result = server.apply(path_of(body), wanted, MANAGER)
    assert result["spec"]["replicas"] == 1
    assert managers_of(result, ("spec", "replicas")) == frozenset()


def test_takes_over_what_is_left_of_a_probe_that_somebody_edited(server: ApiServer, namespace: str) -> None:
    probe = {**PROBE, "periodSeconds": 5}
    body = deployment(namespace, livenessProbe=probe)
    server.apply(path_of(body), body, MANAGER)
    edit = {"containers": [{"name": "web", "livenessProbe": {"periodSeconds": 9}}]}
    server.patch(path_of(body), {"spec": {"template": {"spec": edit}}}, "kubectl-edit", STRATEGIC)
    live, wanted = server.get(path_of(body)), deployment(namespace)
    with pytest.raises(Refused, match="must specify a handler type"):
        server.apply(path_of(body), wanted, MANAGER)
    said = three_way(wanted, live, manager=MANAGER, previous=body, schema=SCHEMA)
    assert said.removed_paths == ("spec.template.spec.containers[name=web].livenessProbe.periodSeconds",)
    patch(server, body, lambda now: takeover_operations(now, MANAGER, said.removed_paths))
    result = server.apply(path_of(body), wanted, MANAGER)
    assert "livenessProbe" not in result["spec"]["template"]["spec"]["containers"][0]
