from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.refs import GVK
from reconciler.kube import ServedKind
from reconciler.kube.kube_requests import (
    ListQuery,
    Purpose,
    Request,
    Target,
    apply,
    create,
    is_path_segment,
    json_patch,
    list_page,
    read,
    watch,
)

PODS = ServedKind(gvk=GVK("", "v1", "Pod"), plural="pods", namespaced=True)
NODES = ServedKind(gvk=GVK("", "v1", "Node"), plural="nodes", namespaced=False)
DEPLOYMENTS = ServedKind(gvk=GVK("apps", "v1", "Deployment"), plural="deployments", namespaced=True)
POD = Target(kind=PODS, namespace="demo", name="p")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("demo"), "/api/v1/namespaces/demo/pods"),
        (DEPLOYMENTS.path("demo", "web"), "/apis/apps/v1/namespaces/demo/deployments/web"),
        (NODES.path("demo", "n1"), "/api/v1/nodes/n1"),
        (NODES.path("", "system:node?x"), "/api/v1/nodes/system%3Anode%3Fx"),
    ],
)
def test_paths_are_those_of_the_kubernetes_api(path: str, expected: str) -> None:
    assert path == expected


@given(st.text().filter(is_path_segment), st.text().filter(is_path_segment))
def test_no_name_leaves_its_segment_of_the_path(namespace: str, name: str) -> None:
    segments = PODS.path(namespace, name).split("/")
    assert [unquote(segment) for segment in segments[1:]] == ["api", "v1", "namespaces", namespace, "pods", name]


def test_what_may_be_repeated_is_what_changes_nothing_the_second_time() -> None:
    assert {purpose for purpose in Purpose if Request(method="X", path="/", purpose=purpose).may_repeat} == {
        Purpose.READ,
        Purpose.APPLY,
    }


def test_writes_are_strict_and_name_their_manager() -> None:
    body = {"metadata": {"name": "p"}}
    made = create(POD, body, manager="m")
    forced = apply(POD, body, manager="m", force=True, uid="u", dry_run=True)
    patched = json_patch(POD, [{"op": "remove", "path": "/x"}], manager="m")
    assert made.query == {"fieldManager": "m", "fieldValidation": "Strict"}
    assert forced.query == {"fieldManager": "m", "force": "true", "fieldValidation": "Strict", "dryRun": "All"}
    assert patched.query == {"fieldManager": "m", "fieldValidation": "Strict"}
    assert (made.purpose, forced.purpose, patched.purpose) == (Purpose.CREATE, Purpose.APPLY, Purpose.PATCH)
    assert patched.content_type == "application/json-patch+json"


def test_lists_are_paged_and_watches_are_bounded() -> None:
    query = ListQuery(label_selector="a=b", field_selector="metadata.name=x")
    assert list_page(PODS, query, limit=500, token="t").query == {
        "labelSelector": "a=b",
        "fieldSelector": "metadata.name=x",
        "limit": "500",
        "continue": "t",
    }
    assert list_page(PODS, ListQuery(), limit=0).query == {}
    watched = watch(PODS, ListQuery(), resource_version="7", seconds=60)
    assert watched.query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "60",
        "resourceVersion": "7",
    }


def test_a_request_never_prints_its_body() -> None:
    request = create(POD, {"data": {"password": "hunter2"}}, manager="m")
    assert b"hunter2" in request.body
    assert "hunter2" not in repr(request)


def test_the_target_of_a_request_is_path_and_query() -> None:
    assert read("/version").target == "/version"
    assert read("/x", labelSelector="a in (b)").target == "/x?labelSelector=a+in+%28b%29"
