"""YAML that every reader takes for the tree that was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report import dump_yaml
from tests.golden.plans import HOSTILE
from tests.yaml_text import load_yaml

texts = st.text(st.characters(codec="utf-8")) | st.text("ab1 :#-\n.'\"\\{[&*!|>%@~=0eExo_+") | st.sampled_from(HOSTILE)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
trees = st.recursive(leaves, lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4))


@given(trees)
def test_comes_back_as_it_was(tree: Any) -> None:
    assert load_yaml(dump_yaml(tree)) == tree


@pytest.mark.parametrize(
    "text", ["a\n", "a\n\n", "a\nb\n\n", "\na\n", "\n", "\n\n", " a\nb", "a \nb", "a\n \nb", "a\n\n\nb"]
)
def test_line_ends_and_spaces_are_not_lost(text: str) -> None:
    assert load_yaml(dump_yaml([{"a": text}, text])) == [{"a": text}, text]


@given(st.dictionaries(texts, trees, max_size=4))
def test_equal_trees_give_equal_text(tree: dict[str, Any]) -> None:
    assert dump_yaml(dict(reversed(tree.items()))) == dump_yaml(tree)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "on",
            "Off",
            "y",
            "NO",
            "true",
            "null",
            "~",
            "1",
            "1.5",
            "1e3",
            "0o14",
            "014",
            "0x1F",
            "1_000",
            "22:22",
            ".inf",
        ),
        *(
            "2001-01-01",
            "=",
            "<<",
            "- a",
            "a: b",
            "a #b",
            "a:",
            "",
            " a",
            "a ",
            "#x",
            "&a",
            "*a",
            "!t",
            "@x",
            "`x",
            "%x",
        ),
        *("\ta", "a\tb", "\x7f", "\u2028", "\ufeff", "\U000e0041", "---", "...", "? a", "::error::x", "##vso[x]y"),
    ],
)
def test_what_some_reader_takes_for_something_else_is_quoted(text: str) -> None:
    assert dump_yaml({"a": text}).startswith('a: "')


@pytest.mark.parametrize(
    "text",
    ["web", "nginx:1.27", "registry.example.com/team/app:v1@sha256", "100m", "64Mi", "a b", "app.kubernetes.io/name"],
)
def test_what_nobody_can_mistake_stays_bare(text: str) -> None:
    assert dump_yaml({"a": text}) == f"a: {text}\n"


def test_texts_of_many_lines_are_blocks() -> None:
    assert dump_yaml({"a": "x\n  y\n\nz\n", "b": ["p\nq"]}) == "a: |\n  x\n    y\n\n  z\nb:\n- |-\n  p\n  q\n"


def test_a_block_never_holds_a_line_that_a_runner_obeys() -> None:
    assert dump_yaml({"a": "x\n  ::error::y\n"}) == 'a: "x\\n  ::error::y\\n"\n'
    assert "##" not in dump_yaml({"a": "x\n##[error]y\n"})


def test_the_first_keys_are_those_that_a_reader_looks_for() -> None:
    tree = {"spec": {"kind": 1, "apiVersion": 2}, "metadata": {}, "kind": "K", "data": 1, "apiVersion": "v1"}
    text = dump_yaml(tree)
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        *("apiVersion: v1", "kind: K", "metadata: {}", "data: 1", "spec:")
    ]
    assert text.endswith("spec:\n  apiVersion: 2\n  kind: 1\n")
