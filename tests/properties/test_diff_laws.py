"""Laws of the diff on generated trees."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.plan import MISSING
from reconciler.diff import Difference, tree_changes
from reconciler.documents import Schema, schema_of_crd
from reconciler.ownership import FieldPath, Keyed, Member, fields_of, matches, parse_path, path_text, union, value_at
from reconciler.ownership.managed_fields import difference, paths_of
from tests.engine_t import three_way
from tests.present import present
from tests.unit.ownership_notation import US

_STRING = {"type": "string"}
_ITEM = {
    "type": "object",
    "properties": {"name": _STRING, "value": _STRING, "tags": {"type": "array", "items": _STRING}},
}
_KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "items": {"type": "array", "items": _ITEM, **_KEYED},
        "names": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": _STRING},
        "steps": {"type": "array", "items": _STRING},
    },
}
_VERSION = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}}}


def schema() -> Schema:
    """The schema of the generated kind."""
    found = present(schema_of_crd({"spec": {"versions": [_VERSION]}}, "v1"))
    return found


SCHEMA = schema()
words = st.text("ab/.'\"[]=,\\ 1", min_size=1, max_size=4)
values = st.sampled_from(["x", "y", "z", ""])
items = st.fixed_dictionaries({"name": words}, optional={"value": values, "tags": st.lists(values, max_size=2)})
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 3),
        "items": st.lists(items, min_size=1, max_size=3, unique_by=lambda item: item["name"]),
        "names": st.lists(words, min_size=1, max_size=3, unique=True),
        "map": st.dictionaries(words, values, min_size=1, max_size=3),
        "steps": st.lists(values, max_size=2),
    },
)


def body(spec: dict[str, Any], owned: dict[str, Any] | None = None) -> dict[str, Any]:
    entry = {"manager": US, "operation": "Apply", "apiVersion": "e/v1", "fieldsV1": owned}
    managed = {"managedFields": [entry]} if owned is not None else {}
    return {"apiVersion": "e/v1", "kind": "Thing", "metadata": {"name": "x", **managed}, "spec": spec}


def ownership_of(spec: dict[str, Any]) -> dict[str, Any]:
    """FieldsV1 as the API server records it for an applied spec."""
    fields: dict[str, Any] = {}
    for name, value in spec.items():
        if name == "map":
            fields["f:map"] = {f"f:{key}": {} for key in value}
        elif name == "names":
            fields["f:names"] = {"v:" + orjson.dumps(key).decode(): {} for key in value}
        elif name == "items":
            keyed: dict[str, Any] = {}
            for item in value:
                keyed["k:" + orjson.dumps({"name": item["name"]}).decode()] = {".": {}, **{f"f:{k}": {} for k in item}}
            fields["f:items"] = keyed
        else:
            fields[f"f:{name}"] = {}
    return {"f:spec": fields} if fields else {}


@given(specs)
def test_what_was_applied_is_silent(spec: dict[str, Any]) -> None:
    live = body(spec, ownership_of(spec))
    assert three_way(body(spec), live, manager=US, previous=body(spec), schema=SCHEMA) == Difference()
    assert three_way(body(spec), live, manager=US, schema=SCHEMA) == Difference()


@given(specs, specs)
def test_what_was_never_mentioned_is_never_touched(desired: dict[str, Any], live: dict[str, Any]) -> None:
    said = three_way(body(desired), body(live), manager=US, schema=SCHEMA)
    for change in said.fields:
        path = present(parse_path(change.path))
        assert change.after is not MISSING
        assert value_at(body(desired), path) is not MISSING


@given(specs, specs)
def test_says_what_differs_and_nothing_else(previous: dict[str, Any], desired: dict[str, Any]) -> None:
    live = body(previous, ownership_of(previous))
    said = three_way(body(desired), live, manager=US, previous=body(previous), schema=SCHEMA)
    told = [parse_path(change.path) for change in said.fields]
    actual = [path for path, _, _ in tree_changes(body(previous), body(desired), SCHEMA)]
    for path in actual:
        assert any(known is not None and _related(known, path) for known in told), path
    for known in told:
        assert known is not None
        assert any(_related(known, path) for path in actual), known


def _related(one: FieldPath, other: FieldPath) -> bool:
    return matches(one, other) or matches(other, one)


@given(specs, specs)
def test_a_change_back_is_the_mirror_image(one: dict[str, Any], other: dict[str, Any]) -> None:
    there = {path_text(p): (b, a) for p, b, a in tree_changes(body(one), body(other), SCHEMA)}
    back = {path_text(p): (a, b) for p, b, a in tree_changes(body(other), body(one), SCHEMA)}
    assert there.keys() == back.keys()


key_pairs = st.dictionaries(st.sampled_from("ab"), st.one_of(words, st.integers(-(2**63), 2**63 - 1)), min_size=1)
steps = st.one_of(
    words,
    st.builds(Member, st.one_of(words, st.integers(0, 9), st.booleans())),
    key_pairs.map(lambda pairs: Keyed(tuple(sorted(pairs.items())))),
    st.integers(0, 20),
)


@given(st.lists(steps, min_size=1, max_size=5).map(tuple))
def test_every_path_can_be_read_back(path: FieldPath) -> None:
    assert parse_path(path_text(path)) == path


@given(specs, specs)
def test_ownership_trees_join_and_part(one: dict[str, Any], other: dict[str, Any]) -> None:
    left, right = ownership_of(one), ownership_of(other)
    joined = union([left, right])
    assert set(paths_of(joined)) == set(paths_of(left)) | set(paths_of(right))
    assert set(paths_of(difference(joined, right))) == set(paths_of(left)) - set(paths_of(right))
    assert set(paths_of(fields_of(body(one, left), US))) == set(paths_of(left))
