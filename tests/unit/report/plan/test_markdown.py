"""A comment on a pull request: never too long, never markup of others, what destroys above every fold."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from reconciler.api.plan import Action, Direction, FieldChange, Plan, SettingChange
from reconciler.api.problem import Problem, Severity, Source
from reconciler.report.plan.markdown import BUDGET, BUDGET_MIN, comment_marker, plan_markdown
from reconciler.report.terminal import name_lines
from tests.golden.hostile_plans import plans
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
from tests.golden.pulls import PULLS, fleet_wide_bump, own_images, released_team


@settings(max_examples=60)
@given(plans(), st.integers(BUDGET_MIN, 12_000))
def test_never_exceeds_its_budget_and_never_leaves_its_code(plan: Plan, budget: int) -> None:
    text = plan_markdown(plan, budget=budget)
    assert len(text.encode()) <= budget
    assert text.startswith("<!-- fleet-plan -->\n### ")
    outside = prose(text)
    assert outside.count("<details") == outside.count("</details>")
    for forbidden in ("<script", "@", "](", "http", "\u202e", "\x1b", "-->\n", "error file"):
        assert forbidden not in outside.replace("<!-- fleet-plan -->", ""), forbidden
    assert not re.search(r"^\s*::|##[A-Za-z]*\[", text, re.MULTILINE)
    assert all(char == "\n" or char.isprintable() for char in text)


def test_errors_are_above_the_fold_unless_their_lines_are_many() -> None:
    errors = [Problem(source=Source("a.yaml", line), code="wrong-type", message="quote it") for line in range(4_000)]
    text = plan_markdown(Plan(base=BASE, head=HEAD, problems=tuple(errors)))
    assert "\n**Errors (4,000)**\n" in text and "4,000 of this kind" in text
    other = [replace(error, code=f"kind-{error.source.line}") for error in errors[:20]]
    assert "<details><summary>Errors (20)</summary>" in plan_markdown(Plan(base=BASE, head=HEAD, problems=tuple(other)))


OUR_HTML = re.compile(
    r"(<!-- fleet-plan( [\w./-]+)? -->|</details>"
    r"|<details( open)?><summary>[A-Z][a-z]+( in <code>[^<>]*</code>)? \([\d,]+\)</summary>)\n?"
)
OUR_INLINE = {"text", "code_inline", "strong_open", "strong_close", "em_open", "em_close", "softbreak"}


@settings(max_examples=60)
@given(plans(), st.integers(BUDGET_MIN, 12_000))
def test_a_reader_of_markdown_finds_no_markup_that_is_not_ours(plan: Plan, budget: int) -> None:
    for token in MarkdownIt("commonmark").enable("table").parse(plan_markdown(plan, budget=budget)):
        if token.type == "html_block":
            for line in token.content.splitlines():
                assert OUR_HTML.fullmatch(line), line
        assert token.type != "code_block", "nothing is indented into code by chance"
        assert not (token.type == "fence" and token.info != "diff")
        assert {child.type for child in token.children or ()} <= OUR_INLINE


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
    assert f"{60 * clusters:,} update, {6 * clusters} delete" in text
    assert f"Contains {6 * clusters} deletions" in text
    assert "image `nginx:1.25` → `1.27`" in text
    if clusters == 100 and budget <= 4096:
        assert "_Left out to fit: " in text


@pytest.mark.parametrize("budget", [4096, BUDGET])
def test_settings_and_objects_together_fit_and_what_loosens_is_kept(budget: int) -> None:
    found = tuple(
        SettingChange(
            source=Source(f"policies/{number}.yaml", 3), document=f"PropagationPolicy shop/p{number}", path="spec.x",
            before="a" * 200, after="b" * 200, meaning="m" * 200, direction=Direction.NEUTRAL,
        )
        for number in range(3000)
    )  # fmt: skip
    loosened = replace(
        found[0], document="Fleet house", path="spec.mode", meaning="nothing is applied",
        direction=Direction.LOOSENS, held=True,
    )  # fmt: skip
    long = replace(loosened, document=f"Fleet {'x' * 70_000}", path=f"spec.x[{'y' * 70_000}]")
    settings = (long, replace(long, path=f"{long.path}z"), loosened, *found)
    plan = replace(large_plan(clusters=100, workloads=60), settings=settings, settings_digest="d" * 16)
    text = plan_markdown(plan, budget=budget)
    assert len(text.encode()) <= budget
    assert "3 loosened settings held" in text.splitlines()[1]
    assert f"spec.review.confirm: {'d' * 16}" in text
    assert "! loosens   HELD  Fleet house" in text
    assert "nothing is applied" in text
    assert "shop/p2999" not in text
    names = [line for line in text.splitlines() if "spec.x[" in line and "y" * 100 in line]
    assert len(names) == len(set(names)) == 2
    assert "_Left out to fit: " in text
    assert "Settings that change" in text.rpartition("_Left out to fit: ")[2]


def test_uses_the_room_that_it_has() -> None:
    text = plan_markdown(own_images(), budget=20_000)
    assert 19_000 < len(text.encode()) <= 20_000


def test_detail_is_given_up_in_steps() -> None:
    changes = [
        change(
            Action.UPDATE,
            "m1",
            CONFIG_MAP,
            f"c{number}",
            fields=(FieldChange(path="data.text", before=f"{number}\n" * 30, after="b\n" * 30),),
        )
        for number in range(20)
    ]
    plan = Plan(base=BASE, head=HEAD, changes=tuple(changes))
    full = plan_markdown(plan)
    assert "Left out" not in full
    shorter = plan_markdown(plan, budget=len(full.encode()) - 1)
    assert "_Left out to fit: long values and texts (Changes)." in shorter
    assert shorter.count("data.text") == 20
    shortest = plan_markdown(plan, budget=len(shorter.encode()) - 1)
    assert "1 of 20 entries" in shortest
    assert shortest.count("data.text") == 19, "what changes stays with each entry that stays"
    assert "… 1 more: 1 × update ConfigMaps (text)" in shortest


def test_destruction_stands_above_every_fold() -> None:
    text = plan_markdown(ordinary_plan())
    fold = text.index("<details>")
    assert text.index("[!CAUTION]") < fold
    assert text.index("- delete     hz-prod-{a,b}") < fold
    assert text.index("HELD: waits for idc-1 healthy") < fold
    assert text.index("HELD: guard: deleting a PersistentVolumeClaim") < fold
    assert text.index("UNMANAGED") < fold
    assert text.index("INCOMPLETE") < fold


def test_identical_changes_of_thirty_clusters_are_one_entry() -> None:
    plan = Plan(base=BASE, head=HEAD, changes=tuple(image_bump(f"edge-{n:02}") for n in range(30)))
    text = plan_markdown(plan)
    assert "~ update     edge-{00..29}  Deployment demo/web" in text
    assert text.count("→ nginx:1.27") == 1


def test_a_fence_is_longer_than_any_run_of_backticks_inside() -> None:
    text = plan_markdown(hostile_plan())
    blocks = re.findall(r"^(`{3,})diff\n(.*?)^\1$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("diff\n")
    assert any("`````" in inside for _, inside in blocks)
    assert all(fence not in inside for fence, inside in blocks)


def test_a_plan_without_changes_says_so() -> None:
    text = plan_markdown(Plan(base=BASE, head=HEAD))
    assert "### no changes\n" in text
    assert "<details" not in text


@pytest.mark.parametrize("name", [*HOSTILE, "shop", "a--b", ""])
def test_the_marker_is_one_comment(name: str) -> None:
    marker = comment_marker(name)
    assert re.fullmatch(r"<!-- fleet-plan( [A-Za-z0-9./_-]+)? -->", marker)
    assert "--" not in marker[4:-3]


def test_the_hostile_plan_fits_as_well() -> None:
    for budget in (BUDGET_MIN, 5000, BUDGET):
        assert len(plan_markdown(hostile_plan(), budget=budget).encode()) <= budget


NOUNS = {Action.DELETE: "deletion", Action.RELEASE: "release", Action.REPLACE: "replacement"}


@pytest.mark.parametrize("count", [2, 50])
@pytest.mark.parametrize("action", [Action.DELETE, Action.RELEASE, Action.REPLACE])
@pytest.mark.parametrize("held", [None, "guard: too many", "waits for m2 healthy"])
def test_losses_get_the_red_box_and_are_named_however_many_and_whatever_holds_them(
    action: Action, held: str | None, count: int
) -> None:
    gone = tuple(change(action, f"m{n % 3}", CONFIG_MAP, f"old-{n}", held=held) for n in range(count))
    text = plan_markdown(Plan(base=BASE, head=HEAD, changes=(*gone, image_bump("m1"))))
    above = text.partition("<details")[0]
    assert "> [!CAUTION]" in above
    above = above.partition("```diff")[2]
    assert f"{count} {NOUNS[action]}s" in text.splitlines()[1]
    assert named_in(above) == {f"demo/old-{n}" for n in range(count)}


def named_in(text: str) -> set[str]:
    """The objects that are named in compact form, without ranges; those of ranges are counted out."""
    found: set[str] = set()
    for name, inside in re.findall(r"demo/([\w.-]*)(?:\{([^}]*)\})?", text):
        for ending in inside.split(",") if inside else [""]:
            first, dots, last = ending.partition("..")
            endings = map(str, range(int(first), int(last) + 1)) if dots else [ending]
            found |= {f"demo/{name}{each}" for each in endings}
    return found


def test_four_thousand_releases_are_all_named_in_one_comment() -> None:
    plan = released_team()
    text = plan_markdown(plan)
    assert "Left out" not in text
    assert named_in(text.partition("<details")[0]) == {f"demo/{one.identity.name}" for one in plan.changes}


def test_five_thousand_equal_bumps_show_the_image_at_any_size() -> None:
    plan = fleet_wide_bump()
    for budget in (4096, BUDGET):
        text = plan_markdown(plan, budget=budget)
        first = text.splitlines()[1]
        assert first == (
            "### 5,000 Deployments in 10 clusters: image `nginx:1.27` → `1.28`; 50 deletions held by the guard"
        )
        assert ".image  nginx:1.27 → nginx:1.28" in text
        assert named_in(text.partition("<details")[0]) == {f"demo/old-{n}" for n in range(50)}


@pytest.mark.parametrize("name", ["broken-file", "unreadable-cluster", "without-observations"])
def test_what_could_not_be_seen_is_never_no_changes(name: str) -> None:
    assert "no changes" not in plan_markdown(PULLS[name]())


def crowded(names: list[str], others: int, problems: int) -> Plan:
    """Losses with these names, that many other changes which are all different, and so many hints."""
    gone = tuple(change(Action.DELETE, "m1", CONFIG_MAP, name) for name in names)
    rest = tuple(
        change(Action.UPDATE, "m1", CONFIG_MAP, f"c{n}", fields=(FieldChange(path="data.x", before=n, after=-n),))
        for n in range(others)
    )
    found = tuple(
        Problem(source=Source("a.yaml", n), code="note", message="x" * 80, severity=Severity.HINT)
        for n in range(problems)
    )
    return Plan(base=BASE, head=HEAD, changes=(*gone, *rest), problems=found)


@settings(max_examples=40)
@given(
    st.lists(st.from_regex(r"[a-z]{3,30}(-[a-z0-9]{3,9})?", fullmatch=True), min_size=1, max_size=200, unique=True),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(BUDGET_MIN, 9000),
)
def test_no_loss_is_cut_before_what_matters_less(names: list[str], others: int, problems: int, budget: int) -> None:
    text = plan_markdown(crowded(names, others, problems), budget=budget)
    assert len(text.encode()) <= budget
    if re.search(r"of \d+ lines \(Deletions", text) or "everything but the counts" in text:
        assert "<details" not in text
        assert "data.x" not in text
    else:
        assert named_in(text) >= {f"demo/{name}" for name in names}
        assert all(line in text for line in name_lines((f"demo/{n}" for n in names), chars_max=110)) or len(names) <= 8


def test_the_reader_of_names_finds_them() -> None:
    assert named_in("demo/a-{1..3,x}, demo/b  other/c") == {"demo/a-1", "demo/a-2", "demo/a-3", "demo/a-x", "demo/b"}
