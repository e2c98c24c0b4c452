"""Lists that share their equal parts say exactly what `orjson.loads` says. Source: design#boundaries."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.errors import BadAnswer
from reconciler.kube.answers import page
from reconciler.kube.connection.bounds import SharedTrees

TEXT = st.text(st.characters(codec="utf-8"), max_size=80)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXT, below, max_size=5),
    max_leaves=30,
)
METADATA = st.dictionaries(st.sampled_from(["name", "uid", "resourceVersion", "labels", "managedFields"]), JSON)
ITEMS = JSON | st.dictionaries(st.sampled_from(["metadata", "spec", "status", "kind"]), METADATA | JSON)


def body_of(*items: Any) -> bytes:
    return orjson.dumps({"kind": "DeploymentList", "apiVersion": "apps/v1",
                         "metadata": {"resourceVersion": "7"}, "items": items})  # fmt: skip


def deployment(cluster: str, image: str = "nginx:1") -> dict[str, Any]:
    env = [{"name": f"V{number}", "value": "x" * 40} for number in range(9)]
    owned = {"manager": "a", "time": f"of {cluster}", "fieldsV1": {f"f:{number}": {} for number in range(40)}}
    metadata = {"name": "app", "uid": f"uid in {cluster}", "managedFields": [owned]}
    container = {"name": "main", "image": image, "env": env, "resources": {"limits": {"memory": "1Gi"}}}
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}


def container_of(answer: dict[str, Any] | None) -> dict[str, Any]:
    assert answer is not None
    (item,) = answer["items"]
    found: dict[str, Any] = item["spec"]["template"]["spec"]["containers"][0]
    return found


@given(st.lists(ITEMS, max_size=4))
def test_a_shared_list_says_what_it_says_alone(items: list[Any]) -> None:
    trees, body = SharedTrees(), body_of(*items, *items)
    with trees.list_under_way():
        assert trees.list_answer(body) == trees.list_answer(body) == orjson.loads(body)


def test_equal_parts_of_two_clusters_are_one_object_and_the_rest_is_their_own() -> None:
    trees = SharedTrees()
    with trees.list_under_way():
        first, second = (trees.list_answer(body_of(deployment(name))) for name in ("m1", "m2"))
    assert first is not None
    assert second is not None
    (one,), (other,) = first["items"], second["items"]
    assert one["spec"] is other["spec"]
    (owned,), (as_owned) = one["metadata"]["managedFields"], other["metadata"]["managedFields"][0]
    assert owned["fieldsV1"] is as_owned["fieldsV1"]
    assert (owned["time"], as_owned["time"]) == ("of m1", "of m2")
    assert (one["metadata"]["uid"], other["metadata"]["uid"]) == ("uid in m1", "uid in m2")


def test_what_differs_in_one_value_shares_all_others() -> None:
    trees = SharedTrees()
    with trees.list_under_way():
        one, other = (container_of(trees.list_answer(body_of(deployment("m1", image)))) for image in ("a:1", "b:1"))
    assert (one["image"], other["image"]) == ("a:1", "b:1")
    assert one["env"] is other["env"]


def test_nothing_is_kept_when_no_list_is_under_way_any_more() -> None:
    trees = SharedTrees()
    with trees.list_under_way():
        with trees.list_under_way():
            trees.list_answer(body_of(deployment("m1")))
        assert trees.size > 0
    assert trees.size == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"items":1}', b'{"items":[{"a":\xff}]}', b'{"items":["\xff"]}', b'{"items":[NaN]}',
     b'{"items":[' + b"[" * 5000 + b"]" * 5000 + b"]}", b'{"items":[{"metadata":{"name":"\\ud800"}}]}'],
)  # fmt: skip
def test_what_is_no_list_is_refused_as_ever(body: bytes) -> None:
    trees = SharedTrees()
    with trees.list_under_way():
        assert trees.list_answer(body) is None
        with pytest.raises(BadAnswer):
            page("m1", body, "apps/v1", "Deployment", trees)


def test_so_much_of_all_lists_as_it_is_told_shares_nothing() -> None:
    """Decoding them at once is quicker; what is beyond that is shared, so that memory stays bounded."""
    body = body_of({"metadata": {"name": "a"}, "data": {"a": "x" * 300}})
    trees = SharedTrees(apart_bytes=2 * len(body))
    with trees.list_under_way():
        assert [trees.list_answer(body) is None for _ in range(4)] == [True, True, False, False]
        assert trees.size
