"""Differences of two trees."""

from __future__ import annotations

from typing import Any

from reconciler.api.plan import MISSING
from reconciler.api.refs import GVK
from reconciler.diff import tree_changes
from reconciler.diff.trees import declared
from reconciler.documents import builtin_schema
from reconciler.ownership import path_text

SCHEMA = builtin_schema(GVK("apps", "v1", "Deployment"))


def test_trees_are_compared_by_keys_values_and_order() -> None:
    def pod(*containers: dict[str, Any]) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": list(containers)}}}}

    before = pod({"name": "a", "image": "x"}, {"name": "b", "resources": {"limits": {"cpu": "1"}}}, {"name": "c"})
    after = pod({"name": "b", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "a", "image": "y"}, {"name": "d"})
    found = {path_text(path): (one, other) for path, one, other in tree_changes(before, after, SCHEMA)}
    place = "spec.template.spec.containers"
    assert found == {
        f"{place}[name=a].image": ("x", "y"),
        f"{place}[name=c]": ({"name": "c"}, MISSING),
        f"{place}[name=d]": (MISSING, {"name": "d"}),
        place: ([["a"], ["b"]], [["b"], ["a"]]),
    }


def test_only_what_can_be_wished_for_is_compared() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "uid": "y", "labels": {"a": "b"}, "generation": 3},
        "data": {"k": "v"},
        "status": {"phase": "z"},
    }
    assert declared(body) == {"data": {"k": "v"}, "metadata": {"labels": {"a": "b"}}}


def test_duplicate_keys_are_compared_as_a_whole() -> None:
    def pod(*names: str) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": [{"name": name} for name in names]}}}}

    assert tree_changes(pod("a", "a"), pod("a", "a"), SCHEMA) == ()
    (change,) = tree_changes(pod("a", "a"), pod("a"), SCHEMA)
    assert path_text(change[0]) == "spec.template.spec.containers"


def test_an_unknown_kind_is_compared_with_atomic_lists() -> None:
    (change,) = tree_changes({"spec": {"l": [1, 2]}}, {"spec": {"l": [1, 3]}}, None)
    assert change == (("spec", "l"), [1, 2], [1, 3])
