from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.refs import GVK, Identity
from reconciler.errors import BadAnswer
from reconciler.kube.answers import Page, as_live_object, listing, live_object, page, reading_answer, struct
from reconciler.kube.discovery import Root
from reconciler.kube.pod_shapes import NodeList, PodList

DEPLOYMENT = GVK("apps", "v1", "Deployment")
LIST = {"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {"resourceVersion": "7"}, "items": []}
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
PODS = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [POD]}

NO_LISTS: dict[str, bytes] = {
    "empty body": b"",
    "truncated": json.dumps(LIST).encode()[:-5],
    "HTML": b"<html><body>Please log in</body></html>",
    "null": b"null",
    "a bare array": b"[]",
    "an empty object": b"{}",
    "another kind": json.dumps({**LIST, "kind": "Status"}).encode(),
    "another apiVersion": json.dumps({**LIST, "apiVersion": "v1"}).encode(),
    "no items": json.dumps({key: value for key, value in LIST.items() if key != "items"}).encode(),
    "items are null": json.dumps({**LIST, "items": None}).encode(),
    "no metadata": json.dumps({**LIST, "metadata": None}).encode(),
    "items remain": json.dumps({**LIST, "metadata": {"remainingItemCount": 3}}).encode(),
}


@pytest.mark.parametrize("body", NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_no_list_never_reads_as_an_empty_one(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        page("m1", body, "apps/v1", "Deployment")


@pytest.mark.parametrize("body", NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_no_list_of_pods_or_nodes_never_reads_as_an_empty_one(body: bytes) -> None:
    for shape in (PodList, NodeList):
        with pytest.raises(BadAnswer):
            struct("m1", body, shape, "list")


def test_a_list_of_pods_is_no_list_of_nodes() -> None:
    body = json.dumps(PODS).encode()
    assert struct("m1", body, PodList, "list of Pods").items[0].metadata.name == "p"
    with pytest.raises(BadAnswer):
        struct("m1", body, NodeList, "list of Nodes")


def test_a_pod_of_the_wrong_shape_is_an_error_that_names_the_field() -> None:
    broken = {**PODS, "items": [{**POD, "spec": {"containers": [{"name": 5}]}}]}
    with pytest.raises(BadAnswer, match=r"items\[0\]\.spec\.containers\[0\]\.name"):
        struct("m1", json.dumps(broken).encode(), PodList, "list of Pods")


def test_an_empty_list_of_metadata_may_have_null_items() -> None:
    body: dict[str, Any] = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "items": None,
    }
    assert page("m1", json.dumps(body).encode(), "meta.k8s.io/v1", "Secret").items == []


def test_items_get_the_kind_that_built_in_lists_leave_out() -> None:
    live = as_live_object("m1", {"metadata": {"name": "web", "namespace": "demo", "uid": "u"}}, DEPLOYMENT)
    assert live.identity == Identity("apps", "Deployment", "demo", "web")
    assert (live.body["apiVersion"], live.body["kind"]) == ("apps/v1", "Deployment")


@pytest.mark.parametrize(
    "item", [{}, {"metadata": None}, {"metadata": {"name": ""}}, {"kind": "Pod", "metadata": {"name": "x"}}]
)
def test_an_item_without_a_name_or_of_another_kind_is_an_error(item: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer):
        as_live_object("m1", item, DEPLOYMENT)


def named(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "demo", "uid": f"u-{name}", **metadata}}


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"labels": []}, "labels"),
        ({"managedFields": "x"}, "managedFields"),
        ({"managedFields": [{"fieldsV1": {"f:spec": {"f:a": 1}}}]}, r"managedFields\[0\]\.fieldsV1"),
        ({"ownerReferences": [{"name": "x"}]}, "ownerReferences"),
        ({"uid": 7}, "uid"),
        ({"annotations": {"a": None}}, "annotations"),
        ({"finalizers": [None]}, "finalizers"),
        ({"generation": "3"}, "generation"),
        ({"resourceVersion": 7}, "resourceVersion"),
    ],
)
def test_one_object_with_wrong_metadata_is_unread_and_the_others_of_the_list_are_there(
    metadata: dict[str, Any], where: str
) -> None:
    items = [named("a"), named("b", **metadata), named("c", labels=None, managedFields=None)]
    found = listing("m1", [Page(items=items, resource_version="7", token="")], DEPLOYMENT)
    assert [live.identity.name for live in found.objects] == ["a", "c"]
    assert list(found.unread) == [Identity("apps", "Deployment", "demo", "b")]
    assert re.search(where, found.unread[Identity("apps", "Deployment", "demo", "b")])


def test_an_object_that_is_nested_too_deeply_to_be_walked_through_is_unread() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}
    found = listing("m1", [Page(items=[{**named("a"), "spec": deep}], resource_version="7", token="")], DEPLOYMENT)
    assert "nested too deeply" in found.unread[Identity("apps", "Deployment", "demo", "a")]


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"kind":"PodList","items":' + b"[" * 100_000])
def test_brackets_without_end_are_no_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        live_object("m1", body, DEPLOYMENT)
    for shape in (PodList, Root):
        with pytest.raises(BadAnswer):
            struct("m1", body, shape, "list")


def test_a_fault_of_our_own_while_an_answer_is_read_is_an_error_of_that_cluster_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(BadAnswer, match="m1: internal-error") as error, reading_answer("m1", "list of Pods"):
        raise ZeroDivisionError
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("api_version", ["apps/v1beta1", "v1", None])
def test_an_object_of_another_version_is_not_taken(api_version: str | None) -> None:
    body = json.dumps({"apiVersion": api_version, "kind": "Deployment", "metadata": {"name": "x"}}).encode()
    with pytest.raises(BadAnswer):
        live_object("m1", body, DEPLOYMENT)


@given(st.binary())
def test_no_bytes_make_anything_but_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        live_object("m1", body, DEPLOYMENT)
    with pytest.raises(BadAnswer):
        struct("m1", body, PodList, "list of Pods")


def test_an_error_never_quotes_data() -> None:
    body = json.dumps({"kind": "Secret", "data": {"password": "hunter2"}}).encode()
    with pytest.raises(BadAnswer) as error:
        live_object("m1", body, GVK("", "v1", "ConfigMap"))
    assert "hunter2" not in str(error.value)
