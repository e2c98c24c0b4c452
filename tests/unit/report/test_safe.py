"""Text of others cannot move the cursor, hide, command a runner or become markup."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report import ascii_json, inert, joined, visible
from reconciler.report.safe_text import code_html, code_span, fence_for
from tests.golden.plans import HOSTILE

COMMAND = re.compile(r"^\s*::|##[A-Za-z]*\[", re.MULTILINE)


@given(st.text())
def test_visible_text_is_one_printable_line(text: str) -> None:
    assert visible(text).isprintable()


@given(st.text("abcdefzABZ019-_.:/, é日本ü“”–…→✓漢かカ한").filter(lambda text: "##" not in text))
def test_what_prints_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\nb\t", r"a\r\nb\t"),
        ("\u202e\u2066\u200b\ufeff", r"\u202e\u2066\u200b\ufeff"),
        ("\x85\u2028\xa0", r"\x85\u2028\xa0"),
        ("\U000e0041\ud800", r"\U000e0041\ud800"),
        ("日本 é", "日本 é"),
    ],
)
def test_escapes_name_the_character(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.lists(st.sampled_from([*HOSTILE, "  ::warning::x", "x", "\t::stop-commands::x"])))
def test_no_line_of_a_report_commands_a_runner(texts: list[str]) -> None:
    assert COMMAND.search(joined(visible(text) for text in texts)) is None


def test_an_ipv6_network_is_only_touched_at_the_start_of_a_line() -> None:
    assert inert("cidr ::/0") == "cidr ::/0"
    assert inert("::/0") == r"\x3a:/0"


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    )
)
def test_json_keeps_its_meaning_and_loses_its_tricks(tree: object) -> None:
    text = ascii_json(json.dumps(tree, ensure_ascii=False))
    assert json.loads(text) == tree
    assert not re.search("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]", text)
    assert COMMAND.search(text) is None


@given(st.text("`| a\\\n@<") | st.text())
def test_a_code_span_cannot_be_left(text: str) -> None:
    span = code_span(text)
    fence = re.match("`+", span)
    assert fence is not None
    inside = span[len(fence[0]) : -len(fence[0])]
    assert span.endswith(fence[0])
    assert fence[0] not in inside
    assert not inside.startswith("`")
    assert not inside.endswith("`")
    assert re.search(r"(?<!\\)\|", inside) is None


@given(st.text())
def test_code_html_holds_no_markup(text: str) -> None:
    inside = code_html(text).removeprefix("<code>").removesuffix("</code>")
    assert not set("<>\"'") & set(inside)
    assert html.unescape(inside) == visible(text)


@given(st.lists(st.text("` a")))
def test_no_line_closes_its_fence(lines: list[str]) -> None:
    fence = fence_for(lines)
    assert len(fence) >= 3
    assert not any(fence in line for line in lines)
