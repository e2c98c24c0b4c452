"""Values that are written into files of persons: comments, layout and all other values stay."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report import dump_yaml
from reconciler.yaml import NotEdited, edited, read_yaml
from tests.unit.yaml_cases import cases


def _bodies(path: str, text: str, changes: dict[str, Any]) -> list[Any]:
    """The documents with each change; a path that ends with ~ has one last key with dots in it."""
    bodies = [deepcopy(document.body) for document in read_yaml(path, text.encode()).documents]
    for place, value in changes.items():
        number, _, names = place.partition(" ")
        steps = names.split(".")
        if names.endswith("~"):
            head = "data." if names.startswith("data.") else ""
            steps = [*head.split(".")[:-1], names.removeprefix(head).removesuffix("~")]
        here: Any = bodies[int(number)]
        for step in steps[:-1]:
            here = here[int(step)] if isinstance(here, list) else here[step]
        if value is None:
            del here[steps[-1]]
        else:
            here[steps[-1]] = value
    return bodies


@pytest.mark.parametrize("case", cases("yaml/edits.yaml"))
def test_values_are_written_and_the_layout_stays(case: dict[str, Any]) -> None:
    path, ends = case.get("path", "a.yaml"), case.get("ends", "\n")
    before = case["before"].replace("\n", ends)
    bodies = _bodies(path, before, case.get("to", {})) if "to" in case else [{}]
    if "refused" in case:
        with pytest.raises(NotEdited, match=case["refused"]):
            edited(path, before.encode(), bodies, dump_yaml)
    else:
        made = edited(path, before.encode(), bodies, dump_yaml).decode()
        assert made == case["after"].replace("\n", ends)


KEYS = st.sampled_from(["a", "b", "name", "x.y/z", "yes", "ä"])
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text("ab:#-{}[],'\"\n \\ü", max_size=6), st.just("1.20")
)
TREES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3), max_leaves=10
)
BODIES = st.dictionaries(KEYS, TREES, max_size=4)


@given(BODIES, BODIES, st.sampled_from([None, 2]), st.sampled_from(["a.json", "a.yaml"]))
def test_what_stands_between_brackets_can_be_written(old: Any, new: Any, indent: int | None, path: str) -> None:
    made = edited(path, json.dumps(old, indent=indent).encode(), [new], dump_yaml)
    assert [document.body for document in read_yaml(path, made).documents] == [new]


@given(st.lists(st.tuples(BODIES, BODIES), min_size=1, max_size=3), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_exactly_what_was_wanted_or_nothing_is(pairs: list[tuple[Any, Any]], ends: str) -> None:
    text = "---\n".join(f"# {number}\n{dump_yaml(old)}" for number, (old, _) in enumerate(pairs)).replace("\n", ends)
    bodies = [new for _, new in pairs]
    try:
        made = edited("a.yaml", text.encode(), bodies, dump_yaml)
    except NotEdited:
        return
    assert [document.body for document in read_yaml("a.yaml", made).documents] == bodies
    assert [line for line in made.decode().split(ends) if line.startswith("# ")] == [
        f"# {n}" for n in range(len(pairs))
    ]
