"""Two different values never look the same: at any length, with any separator, in every form of output."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.plan import MISSING, FieldChange, Plan
from reconciler.controller.round.writes import _value
from reconciler.report import ascii_json, json_text, value_texts, visible
from reconciler.report.difference import text_diff, value_text
from reconciler.report.plan import plan_text
from reconciler.report.plan.annotations import plan_annotations, plans_junit
from reconciler.report.plan.markdown import plan_markdown
from reconciler.report.plan.plan_patches import plan_patches
from reconciler.report.status import event_detail
from reconciler.server.pages.plan_page import plans_html
from tests.golden.plans import image_bump

TWINS = str.maketrans("асеорхуіјѕһԁԛԝАВЕКМНОРСТУХЅІЈνοαρΑΒΕɡıａ：／‐∕", "aceopxyijshdqwABEKMHOPCTYXSIJvoapABEgia:/-/")
SEPARATORS = "\n\r\v\f\x1c\x85\u2028\u2029\t "
INVISIBLE = "\u200b\u034f\u115f\u2800\u3164\ufe0f\U000e0041\u202e\u2066\xa0\u3000\xad\ufeff"
texts = st.text(f'ab:/.\\nx20"[{{→{SEPARATORS}{INVISIBLE}аеоɡı\u0301éé') | st.text(max_size=60)
values = texts | st.integers() | st.booleans() | st.none() | st.lists(texts, max_size=3)


def looks(text: str) -> str:
    """Return what an eye sees: no blanks, one alphabet, compositions as one."""
    seen = unicodedata.normalize("NFKC", text.translate(TWINS)).translate(TWINS)
    return "".join(char for char in seen if char.isprintable() and char not in INVISIBLE).strip()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[object, object]:
    """Two values, most of them with long equal ends or a difference that is hard to see."""
    if draw(st.booleans()):
        return draw(values), draw(values)
    head, tail = (draw(texts) * draw(st.sampled_from([0, 1, 40])) for _ in range(2))
    return (f"{head}{draw(texts)}{tail}", f"{head}{draw(texts)}{tail}")


@given(pairs(), st.sampled_from([1, 40, 60, 200, 10**9]))
def test_two_values_on_a_line(pair: tuple[object, object], chars_max: int) -> None:
    before, after = value_texts(*pair, chars_max)
    same = type(pair[0]) is type(pair[1]) and pair[0] == pair[1]
    assert (looks(before) == looks(after)) is same, (before, after)
    assert before.isprintable()
    assert len(before) < 8 * chars_max + 400


@given(values, values, st.sampled_from([4, 60]))
def test_one_value_beside_another(one: object, other: object, chars_max: int) -> None:
    if type(one) is not type(other) or one != other:
        assert value_text(one, chars_max) != value_text(other, chars_max)


@given(texts, texts, st.text(f"ab{SEPARATORS}", max_size=20), st.booleans())
def test_two_texts_of_many_lines(before: str, after: str, around: str, is_whole: bool) -> None:  # drawn
    lines = text_diff(f"{around}\n{before}\n{around}", f"{around}\n{after}\n{around}", is_whole=is_whole)
    marks = [line[0] for line in lines if not line.startswith("| ")]
    assert before == after or marks, lines
    gone, come = ([looks(line[1:]) for line in lines if line[0] == mark] for mark in "-+")
    assert before == after or gone != come or any("line ends" in line or "line end" in line for line in lines)
    assert all(map(str.isprintable, lines))


@pytest.mark.parametrize("lines", [3, 300, 3000])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0])
def test_a_changed_line_is_shown_wherever_it_stands(lines: int, at: float) -> None:
    before = [f"key-{number}: value" for number in range(lines)]
    after = [*before]
    after[round(at * (lines - 1))] += "-evil"
    assert any("evil" in line for line in text_diff("\n".join(before), "\n".join(after)))
    assert len(text_diff("\n".join(before), "\n".join(after))) < 10


def test_a_line_among_a_thousand_that_move_is_shown() -> None:
    before = [f"key-{number}: value" for number in range(1000)]
    assert any("evil" in line for line in text_diff("\n".join(before), "\n".join([*reversed(before), "evil: 1"])))


@pytest.mark.parametrize("blank", [*"\v\f\x1c\x85\u2028\u2029", *INVISIBLE])
def test_what_shows_nothing_is_an_escape(blank: str) -> None:
    assert visible(blank).isascii()
    assert visible(blank) != blank
    assert ascii_json(f'"{blank}"').isascii()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("nginx:1.25", "nginx:1.27", ("nginx:1.25", "nginx:1.27")),
        ("a" * 300, "a" * 300 + " evil", ("…" + "a" * 24, "…" + "a" * 24 + "{+ evil+}")),
        ("x" * 100 + " 1 " + "y" * 100, "x" * 100 + " 2 " + "y" * 100,
         ("…" + "x" * 23 + " [-1-] " + "y" * 23 + "…", "…" + "x" * 23 + " {+2+} " + "y" * 23 + "…")),
        (r"a\nb", "a\nb", (r"a\\nb", r"a\nb")),
        ("3", 3, ('"3"', "3")),
        ("web", "wеb", ("web", r"w\N{CYRILLIC SMALL LETTER IE}b")),
        ("a -> b", "b", ('"a -> b"', '"b"')),
        (MISSING, "(absent)", ("(absent)", '"(absent)"')),
    ],
)  # fmt: skip
def test_pairs(before: object, after: object, told: tuple[str, str]) -> None:
    assert value_texts(before, after, 120) == told


OUTPUTS: dict[str, Callable[[Plan], str]] = {
    "text": plan_text,
    "markdown": plan_markdown,
    "short markdown": lambda plan: plan_markdown(plan, budget=2048),
    "html": lambda plan: plans_html([plan]),
    "annotations": plan_annotations,
    "junit": lambda plan: plans_junit([plan]),
    "patch": lambda plan: json_text(plan_patches(plan)),
}
LONG = "argument " * 500


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("evil", ["evil", "e\u200bvil"])
def test_a_change_behind_the_cut_is_in_each_output(output: str, evil: str) -> None:
    field = FieldChange(path="spec.args", before=f"{LONG}good {LONG}", after=f"{LONG}{evil} {LONG}")
    change = replace(image_bump("m1"), fields=(field,), manifest={"spec": {"args": field.after}})
    assert visible(evil) in OUTPUTS[output](Plan(base="a", head="b", changes=(change,)))


def test_a_change_behind_the_cut_is_in_history() -> None:
    entry = _value(FieldChange(path="spec.args", before=f"{LONG}good {LONG}", after=f"{LONG}evil {LONG}"))
    assert "evil" in str(entry["after"])
    told = event_detail({"event": "updated", "cluster": "m1", "values": [entry], "fields": ["spec.args"]})
    assert "{+evil+}" in told
