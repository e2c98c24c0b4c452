"""RFC 6902 patches: the jsonpatch package is the oracle where both follow the RFC; what Karmada adds are examples."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.policies import OverrideOperator, PatchOperation
from reconciler.documents import PatchFault, compile_patch, pointer_text, pointer_tokens, resolve, with_value_at

Operation = tuple[str, str, Any]

KEYS = st.sampled_from(["a", "b", "0", "x/y", "m~n", "-", ""])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["", "s"]))
TREES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, TREES, min_size=1, max_size=4)


def patch(operations: Sequence[Operation]) -> Any:
    return compile_patch(
        [
            PatchOperation(operator=OverrideOperator(operator), path=path, value=value)
            for operator, path, value in operations
        ]
    )


def places(tree: Any, tokens: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [tokens]
    if isinstance(tree, dict):
        found += [place for key, value in tree.items() for place in places(value, (*tokens, key))]
    if isinstance(tree, list):
        found += [place for index, value in enumerate(tree) for place in places(value, (*tokens, str(index)))]
    return found


@st.composite
def patched_objects(draw: st.DrawFn) -> tuple[dict[str, Any], list[Operation]]:
    """An object with operations that mostly meet something: paths of the object, with a step more or less."""
    tree = draw(OBJECTS)
    known = places(tree)[1:]
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 5))):
        tokens = draw(st.sampled_from(known))
        if draw(st.booleans()):
            tokens = (*tokens[:-1], draw(st.sampled_from(["a", "b", "0", "1", "2", "new", "-"])))
        elif draw(st.integers(0, 4)) == 0:
            tokens = (*tokens, draw(st.sampled_from(["a", "0", "-"])))
        operator = draw(st.sampled_from(["add", "replace", "remove"]))
        operations.append((operator, pointer_text(tokens), draw(TREES)))
    return tree, operations


def by_jsonpatch(tree: Any, operations: Sequence[Operation]) -> Any:
    written = [
        {"op": operator, "path": path} | ({} if operator == "remove" else {"value": copy.deepcopy(value)})
        for operator, path, value in operations
    ]
    try:
        return jsonpatch.JsonPatch(written).apply(tree)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, AttributeError):
        return PatchFault


@given(patched_objects())
def test_equals_the_jsonpatch_package(drawn: tuple[dict[str, Any], list[Operation]]) -> None:
    tree, operations = drawn
    ours, theirs = patch(operations).apply(tree), by_jsonpatch(tree, operations)
    if theirs is PatchFault:
        assert isinstance(ours, PatchFault), ours
    else:
        assert ours == theirs


@given(patched_objects())
def test_never_writes_into_its_input(drawn: tuple[dict[str, Any], list[Operation]]) -> None:
    tree, operations = drawn
    before, values = copy.deepcopy(tree), copy.deepcopy(operations)
    patch(operations).apply(tree)
    assert (tree, operations) == (before, values)


@given(patched_objects())
def test_equals_its_operations_one_by_one(drawn: tuple[dict[str, Any], list[Operation]]) -> None:
    tree, operations = drawn
    one_by_one: Any = tree
    for number, operation in enumerate(operations):
        one_by_one = patch([operation]).apply(one_by_one)
        if isinstance(one_by_one, PatchFault):
            one_by_one = one_by_one._replace(operation=number)
            break
    assert patch(operations).apply(tree) == one_by_one


@given(st.lists(KEYS, max_size=4).map(tuple))
def test_a_pointer_reads_as_it_was_written(tokens: tuple[str, ...]) -> None:
    assert pointer_tokens(pointer_text(tokens)) == tokens


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([("replace", "/l/-1", "x")], {"l": [1, 2, "x"]}),
        ([("remove", "/l/-3", None)], {"l": [2, 3]}),
        ([("add", "/l/-1", "x")], {"l": [1, 2, 3, "x"]}),
        ([("add", "/l/-2", "x")], {"l": [1, 2, "x", 3]}),
        ([("replace", "/l/01", "x")], {"l": [1, "x", 3]}),
        ([("add", "/l/-", "x"), ("add", "/l/-", "y")], {"l": [1, 2, 3, "x", "y"]}),
        ([("remove", "/l/0", None), ("remove", "/l/0", None)], {"l": [3]}),
        ([("remove", "/l/0", None), ("replace", "/l/1", "x")], {"l": [2, "x"]}),
        ([("replace", "/l/2", "x"), ("replace", "/l/-1", "y")], {"l": [1, 2, "y"]}),
        ([("add", "/l", None)], {"l": None}),
        ([("add", "/m", {"a": 1}), ("add", "/m/b", 2)], {"l": [1, 2, 3], "m": {"a": 1, "b": 2}}),
        ([("add", "/a~1b", 1), ("add", "/~0", 2)], {"l": [1, 2, 3], "a/b": 1, "~": 2}),
        ([("replace", "", {"k": 1})], {"k": 1}),
        ([("replace", "", {"k": 1}), ("add", "/j", 2)], {"k": 1, "j": 2}),
        ([("add", "/", 1)], {"l": [1, 2, 3], "": 1}),
    ],
    ids=str,
)
def test_reads_paths_as_karmada_does(operations: list[Operation], expected: Any) -> None:
    assert patch(operations).apply({"l": [1, 2, 3]}) == expected


@pytest.mark.parametrize(
    ("operations", "number", "said"),
    [
        ([("replace", "/spec/foo", 1)], 0, "there is no 'foo' in /spec; correct the path, or write add"),
        ([("remove", "/nothing", 1)], 0, "there is no 'nothing' in the object; take the operation out, or select only"),
        ([("add", "/spec/f~1o/bar", 1)], 0, "there is no 'f~1o' in /spec; add /spec/f~1o in an operation before this"),
        ([("replace", "/spec/l/3", 1)], 0, "/spec/l has no item 3; it has 3; correct the path"),
        ([("replace", "/spec/l/-4", 1)], 0, "/spec/l has no item -4; it has 3"),
        ([("replace", "/spec/l/-", 1)], 0, "'-' is no index"),
        ([("replace", "/spec/l/x", 1)], 0, "/spec/l is a list, and 'x' is no index"),
        ([("add", "/spec/l/4", 1)], 0, "an item can be inserted at 0 to 3 or appended with -"),
        ([("add", "/spec/n/x", 1)], 0, "/spec/n has no fields and no items"),
        ([("remove", "", None)], 0, "it cannot be removed"),
        ([("replace", "spec/n", 1)], 0, "is no JSON pointer"),
        ([("replace", "/spec/n", 1), ("replace", "/spec/foo", 1)], 1, "there is no 'foo' in /spec"),
        ([("remove", "/spec/n", 1), ("remove", "/spec/n", 1)], 1, "there is no 'n' in /spec"),
        ([("add", "/spec" * 101, 1)], 0, "more than 100 steps"),
        ([("add", "/spec/l/" + "9" * 5000, 1)], 0, "is no index"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_says_which_operation_does_not_apply_and_why(operations: list[Operation], number: int, said: str) -> None:
    fault = patch(operations).apply({"spec": {"l": [1, 2, 3], "n": 1}})
    assert isinstance(fault, PatchFault)
    assert fault.operation == number
    assert said in fault.message


def test_shares_what_no_operation_touches() -> None:
    tree = {"a": {"x": 1}, "b": {"y": [1]}, "c": {}}
    patched = patch([("replace", "/a/x", 2), ("add", "/c/z", 3)]).apply(tree)
    assert patched == {"a": {"x": 2}, "b": {"y": [1]}, "c": {"z": 3}}
    assert patched["b"] is tree["b"]


def test_resolves_an_existing_place_or_says_what_is_missing() -> None:
    tree = {"l": [{"k": 1}]}
    assert resolve(tree, ("l", "-1", "k")) == ("l", 0, "k")
    assert resolve(tree, ("l", "1")) == "/l has no item 1; it has 1"


def test_writes_a_value_copy_on_write() -> None:
    tree: dict[str, Any] = {"l": [{"k": 1}, {}], "m": {}}
    written = with_value_at(tree, ("l", 0, "k"), 2)
    assert written == {"l": [{"k": 2}, {}], "m": {}}
    assert tree["l"][0] == {"k": 1}
    assert written["m"] is tree["m"]


def test_values_that_are_piled_up_stay_writable_as_json() -> None:
    value: Any = 1
    for _ in range(100):
        value = {"a": value}
    operations = [("replace", "/a" * 100, value) for _ in range(5)]
    piled = patch([("add", "/a", value["a"]), *operations]).apply({})
    assert not isinstance(piled, PatchFault)
    assert orjson.dumps(piled).count(b"{") == 200
