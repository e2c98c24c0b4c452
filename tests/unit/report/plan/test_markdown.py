"""A comment on a pull request: never too long, never markup of others, what destroys above every fold."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.plan import Action, Cause, FieldChange, Plan
from reconciler.model.problem import Problem, Source
from reconciler.report.plan.markdown import BUDGET, BUDGET_MIN, comment_marker, plan_markdown
from tests.golden.plans import (
    BASE,
    CONFIG_MAP,
    HEAD,
    HOSTILE,
    change,
    hostile_plan,
    image_bump,
    large_plan,
    ordinary_plan,
)

hostile_texts = st.sampled_from(HOSTILE) | st.text(max_size=40) | st.text("`@<>|\n:#*_[]()!&é\u202e", max_size=400)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    field = st.builds(FieldChange, path=hostile_texts, before=hostile_texts, after=hostile_texts)
    one = st.builds(
        change,
        st.sampled_from(Action),
        hostile_texts,
        st.just(CONFIG_MAP),
        hostile_texts,
        cause=st.sampled_from(Cause),
        held=st.none() | hostile_texts,
        fields=st.lists(field, max_size=4).map(tuple),
        source=st.builds(Source, hostile_texts, st.integers(0, 99)),
    )
    changes = draw(st.lists(one, max_size=6)) * draw(st.sampled_from([1, 1, 40]))
    problem = st.builds(Problem, source=st.builds(Source, hostile_texts), code=hostile_texts, message=hostile_texts)
    return Plan(
        base=draw(hostile_texts),
        head=draw(hostile_texts),
        changes=tuple(replace(found, cluster=f"{found.cluster}{index}") for index, found in enumerate(changes)),
        problems=tuple(draw(st.lists(problem, max_size=4))),
        is_complete=draw(st.booleans()),
        held_digest=draw(hostile_texts),
    )


@settings(max_examples=60)
@given(plans(), st.integers(BUDGET_MIN, 12_000))
def test_never_exceeds_its_budget_and_never_leaves_its_code(plan: Plan, budget: int) -> None:
    text = plan_markdown(plan, budget=budget)
    assert len(text.encode()) <= budget
    assert text.startswith("<!-- fleet-plan -->\n### Fleet plan: ")
    outside = prose(text)
    assert outside.count("<details>") == outside.count("</details>")
    for forbidden in ("<script", "@", "](", "http", "\u202e", "\x1b", "-->\n", "error file"):
        assert forbidden not in outside.replace("<!-- fleet-plan -->", ""), forbidden
    assert not re.search(r"^\s*::|##[A-Za-z]*\[", text, re.MULTILINE)
    assert all(char == "\n" or char.isprintable() for char in text)


def prose(text: str) -> str:
    """The text without its code: fences, spans and code elements, as CommonMark reads them."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = re.match("`{3,}", line)
        if fence:
            fence = "" if mark and mark[0] == line.rstrip() and len(mark[0]) >= len(fence) else fence
        elif mark:
            fence = mark[0]
        else:
            kept.append(line)
    assert not fence, "a fence is left open"
    without_elements = re.sub("<code>[^<]*</code>", "", "\n".join(kept))
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", without_elements)


def test_the_reader_of_code_finds_what_is_outside_of_it() -> None:
    assert prose("a `b` c ``d ` e`` f\n````diff\n```\n@x\n````\n<code>y</code>") == "a  c  f\n"


@pytest.mark.parametrize("budget", [BUDGET_MIN, 4096, 32_768, BUDGET])
@pytest.mark.parametrize("clusters", [1, 100])
def test_a_large_fleet_fits_and_says_what_is_missing(clusters: int, budget: int) -> None:
    plan = large_plan(clusters=clusters, workloads=60)
    text = plan_markdown(plan, budget=budget)
    assert len(text.encode()) <= budget
    assert f"**{60 * clusters} update, {6 * clusters} delete**" in text
    assert f"Contains {6 * clusters} deletions" in text
    if budget <= 4096:
        assert "_Shortened to fit: " in text


def test_uses_the_room_that_it_has() -> None:
    plan = large_plan(clusters=8, workloads=400)
    text = plan_markdown(plan, budget=20_000)
    assert 19_000 < len(text.encode()) <= 20_000


def test_what_destroys_is_cut_last() -> None:
    plan = large_plan(clusters=20, workloads=300)
    text = plan_markdown(plan, budget=4500)
    assert sum(line.startswith("- delete") for line in text.splitlines()) == 30
    assert "lines of changes are left out" in text


def test_detail_is_given_up_in_steps() -> None:
    long = FieldChange(path="data.text", before="a\n" * 100, after="b\n" * 100)
    plan = Plan(
        base=BASE,
        head=HEAD,
        changes=tuple(change(Action.UPDATE, "m1", CONFIG_MAP, f"c{n}", fields=(long,)) for n in range(20)),
    )
    full = plan_markdown(plan)
    assert "Shortened" not in full
    shorter = plan_markdown(plan, budget=len(full.encode()) - 1)
    assert "long values and texts are cut" in shorter
    assert "more characters" not in shorter
    assert "data.text" in shorter
    shortest = plan_markdown(plan, budget=len(shorter.encode()) - 1)
    assert "fields are left out" in shortest
    assert "data.text" not in shortest
    assert all(f"demo/c{n}  " in shortest for n in range(20))


def test_destruction_stands_above_every_fold() -> None:
    text = plan_markdown(ordinary_plan())
    fold = text.index("<details>")
    assert text.index("[!CAUTION]") < fold
    assert text.index("- delete     hz-prod-{a,b}") < fold
    assert text.index("UNMANAGED") < fold
    assert text.index("INCOMPLETE") < fold


def test_identical_changes_of_thirty_clusters_are_one_entry() -> None:
    plan = Plan(base=BASE, head=HEAD, changes=tuple(image_bump(f"edge-{n:02}") for n in range(30)))
    text = plan_markdown(plan)
    assert "~ update     edge-{00..29}  Deployment demo/web" in text
    assert text.count("nginx:1.27") == 1


def test_a_fence_is_longer_than_any_run_of_backticks_inside() -> None:
    text = plan_markdown(hostile_plan())
    blocks = re.findall(r"^(`{3,})diff\n(.*?)^\1$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("diff\n")
    assert any("`````" in inside for _, inside in blocks)
    assert all(fence not in inside for fence, inside in blocks)


def test_a_plan_without_changes_says_so() -> None:
    text = plan_markdown(Plan(base=BASE, head=HEAD))
    assert "**no changes**" in text
    assert "<details>" not in text


@pytest.mark.parametrize("name", [*HOSTILE, "shop", "a--b", ""])
def test_the_marker_is_one_comment(name: str) -> None:
    marker = comment_marker(name)
    assert re.fullmatch(r"<!-- fleet-plan( [A-Za-z0-9./_-]+)? -->", marker)
    assert "--" not in marker[4:-3]


def test_the_hostile_plan_fits_as_well() -> None:
    for budget in (BUDGET_MIN, 5000, BUDGET):
        assert len(plan_markdown(hostile_plan(), budget=budget).encode()) <= budget
