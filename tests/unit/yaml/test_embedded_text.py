"""JSON and YAML inside a text: what is written reads as the same value again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.yaml import EmbeddedTextFault, read_embedded, write_embedded

SURPRISING = st.sampled_from(
    [
        "on",
        "no",
        "null",
        "~",
        "",
        "1e3",
        "0o14",
        "0x1f",
        "1_000",
        "12:30",
        ".inf",
        "=",
        "- a",
        "a: b",
        "#x",
        " x",
        "x ",
        "\x85",
    ]
)
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cs"])
TEXTS = st.one_of(SURPRISING, st.text(CHARACTERS, max_size=8))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXTS),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(TEXTS, below, max_size=3)),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.sampled_from(["json", "yaml"]))
def test_what_is_written_reads_as_the_same_value(value: dict[str, Any], syntax: str) -> None:
    assert read_embedded(write_embedded(value, syntax), syntax) == value


def test_yaml_is_written_with_sorted_keys_and_texts_of_several_lines_as_blocks() -> None:
    assert write_embedded({"b": ["x", "1"], "a": "one\ntwo\n"}, "yaml") == 'a: |\n  one\n  two\nb:\n- x\n- "1"\n'


def test_json_keeps_the_order_of_its_keys() -> None:
    assert write_embedded({"b": 1, "a": [True]}, "json") == '{"b":1,"a":[true]}'


@pytest.mark.parametrize(
    ("text", "syntax", "said"),
    [
        ("{", "json", "line 1"),
        ("", "json", "0 documents"),
        ("", "yaml", "0 documents"),
        ("a: 1\n---\nb: 2\n", "yaml", "2 documents"),
        ("a: 1\na: 2\n", "yaml", "line 2"),
        ("a: [", "yaml", "line"),
        ("a: *x", "yaml", "line 1"),
        ("[" * 2000, "yaml", "line"),
        ("a: \ud800", "yaml", "surrogate"),
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"k{n}: [*b, *b]\n" for n in range(9)), "json", "line 1"),
    ],
    ids=lambda value: str(value)[:20].encode("unicode_escape").decode(),
)
def test_says_why_a_text_cannot_be_read(text: str, syntax: str, said: str) -> None:
    with pytest.raises(EmbeddedTextFault, match=said):
        read_embedded(text, syntax)


@pytest.mark.parametrize("syntax", ["json", "yaml"])
def test_a_value_that_is_too_deep_to_be_read_again_is_not_written(syntax: str) -> None:
    value: Any = 1
    for _ in range(99):
        value = [value]
    assert read_embedded(write_embedded(value, syntax), syntax) == value
    for _ in range(2000):
        value = [value]
    with pytest.raises(EmbeddedTextFault, match="deeper"):
        write_embedded(value, syntax)
