"""Lines that are folded to a terminal: no word is broken, lost or moved."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report import folded, text_width


@pytest.mark.parametrize(
    ("text", "width", "told"),
    [
        ("as it is\n", 8, "as it is\n"),
        ("one two three\n", 8, "one two\n    three\n"),
        ("  in   m1   because of this\n", 16, "  in   m1\n      because of\n      this\n"),
        ("a\nsomebody set it\n", 12, "a\nsomebody set\n    it\n"),
        ("a/path/that/is/longer/than/that x\n", 10, "a/path/that/is/longer/than/that\n    x\n"),
        ("\x1b[1mone\x1b[0m two\n", 7, "\x1b[1mone\x1b[0m two\n"),
        ("\x1b[2mone two three\x1b[0m\n", 8, "\x1b[2mone two\n    three\x1b[0m\n"),
        ("集群 集群\n", 8, "集群\n    集群\n"),
        ("no newline at the end", 12, "no newline\n    at the\n    end"),
    ],
)
def test_lines_are_broken_between_words(text: str, width: int, told: str) -> None:
    assert folded(text, width) == told


def test_a_line_that_begins_anew_is_no_command_of_a_runner() -> None:
    assert not re.search(r"(?m)^\s*::", folded("a name ::set-output name=x::y\n", 10))


@given(st.lists(st.text("ab :/中\x1b[1m", max_size=60), max_size=4).map("\n".join), st.integers(8, 60))
def test_every_word_is_there_in_its_order_and_lines_fit(text: str, width: int) -> None:
    text = re.sub(r"\x1b(?!\[1m)", "", text)
    told = folded(text, width)
    assert told.replace("\\x3a", ":").split() == text.split()
    for line in told.splitlines():
        shown = re.sub(r"\x1b\[1m", "", line)
        assert text_width(shown.replace("\\x3a", ":")) <= width or len(shown.split()) == 1 or line in text.splitlines()
