"""Values on one line that mislead nobody, and texts as diffs of lines."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.plan import MISSING
from reconciler.report import compact_json
from reconciler.report.difference import is_long_text, text_diff, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("nginx:1.27", "nginx:1.27"),
        (MISSING, "(absent)"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        ("", '""'),
        ("true", '"true"'),
        ("3", '"3"'),
        ("1e3", '"1e3"'),
        ("(absent)", '"(absent)"'),
        (" x", '" x"'),
        ("[1]", '"[1]"'),
        ([1, "a"], '[1,"a"]'),
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
        ("a\nb", r"a\nb"),
        (2**70, str(2**70)),
    ],
)
def test_a_value_cannot_be_taken_for_another(value: Any, text: str) -> None:
    assert value_text(value, 100) == text


def test_a_long_value_says_how_much_is_missing() -> None:
    assert value_text("abcdefghij", 4) == "abcd…(+6 characters, #d75c81a2)"


def test_a_diff_shows_changed_lines_with_their_surroundings() -> None:
    before = "".join(f"line {number}\n" for number in range(20))
    after = before.replace("line 10", "line ten").replace("line 19\n", "")
    assert text_diff(before, after) == [
        *("| line 8", "| line 9", "- line 10", "+ line ten", "| line 11", "| line 12"),
        *("…", "| line 17", "| line 18", "- line 19"),
    ]


def test_only_texts_of_many_lines_are_compared_by_line() -> None:
    assert is_long_text("a\nb\n", "a\nc\n")
    assert not is_long_text("a", "b\n")
    assert not is_long_text(MISSING, "a\nb\nc\n")


def test_very_long_texts_are_counted_and_not_compared() -> None:
    lines = text_diff("a\n" * 500, "b\n" * 3)
    assert lines[0] == "… 500 lines become 3 lines; those that are on one side alone:"
    assert len(lines) < 50


def test_a_change_of_line_ends_is_named() -> None:
    assert text_diff("a\nb\n", "a\r\nb\r\n") == ["only line ends change"]


def test_json_has_sorted_keys_and_any_integer() -> None:
    assert compact_json({"b": 2**70, "a": "é"}) == '{"a":"\\u00e9","b":1180591620717411303424}'
