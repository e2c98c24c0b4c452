"""The rows of docs/design.md and the places that cite them: every citation leads to a row, and every row is cited."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, heading_anchors, named_anchors

PAGE = ROOT / "docs/design.md"
CITING = ("reconciler", "tests", "bench", "scripts")
SUFFIXES = frozenset({".py", ".yaml", ".yml", ".sql"})
CITATION = re.compile(r"\b(?i:design)#([\w-]*)")
LOOSE = re.compile(r"\b(?i:design)\b(?!#|\.md)|\b(?i:promises?) \d|§")
"""The page meant without an anchor: by its name, by the number of a promise or of a section."""
ROW = re.compile(r'\| <a id="[a-z0-9]+(?:-[a-z0-9]+)*"></a>')

Place = tuple[str, int, str]
"""File, line number, line."""


def lines_of(path: Path) -> Iterator[Place]:
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield name, number, line


@pytest.fixture(scope="module")
def code() -> list[Place]:
    """Every line of code, cases and tests, but those of this file."""
    found = (path for folder in CITING for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)
    return [line for path in found if path != Path(__file__).resolve() for line in lines_of(path)]


def cited(places: list[Place]) -> list[tuple[str, int, str]]:
    """File, line and anchor of every citation."""
    return [(name, number, anchor) for name, number, line in places for anchor in CITATION.findall(line)]


def test_an_anchor_stands_once() -> None:
    counted = Counter([*named_anchors(PAGE), *heading_anchors(PAGE)])
    assert not [anchor for anchor, times in counted.items() if times > 1]


def test_every_row_has_an_anchor() -> None:
    tables = [(number, line) for _, number, line in lines_of(PAGE) if line.startswith("|")]
    rules = {number for number, line in tables if line.startswith("|---")}
    rows = [(number, line) for number, line in tables if number not in rules and number + 1 not in rules]
    assert len(rows) == len(named_anchors(PAGE)) > 100
    assert not [f"docs/design.md:{number}: {line[:60]}" for number, line in rows if not ROW.match(line)]


def test_every_citation_leads_to_a_row(code: list[Place]) -> None:
    pages = [line for page in PAGES for line in lines_of(ROOT / page)]
    rows = frozenset(named_anchors(PAGE))
    found = cited([*code, *pages])
    assert len(found) > 500
    assert not [f"{name}:{number}: design#{anchor}" for name, number, anchor in found if anchor not in rows]


def test_the_page_is_cited_by_its_rows_alone(code: list[Place]) -> None:
    loose = [f"{name}:{number}: {line.strip()[:100]}" for name, number, line in code if LOOSE.search(line)]
    assert not loose, "Cite a row of docs/design.md by its anchor, as in design#failover."


def test_every_row_is_cited_by_code_or_a_test(code: list[Place]) -> None:
    found = {anchor for _, _, anchor in cited(code)}
    missing = [anchor for anchor in named_anchors(PAGE) if anchor not in found]
    assert not missing, (
        "Cite these rows where they are carried out or tried. What binds nobody is prose, outside of tables."
    )


@pytest.mark.parametrize(
    "text",
    [
        'Source: design, row "failover".',
        "source: 'design: failover'",
        "Design differs in one point",
        "the design's table",
        "design §3",
        "promise 7",
        "Source: promises 1 to 3",
    ],
)
def test_a_loose_citation_is_found(text: str) -> None:
    assert LOOSE.search(text)


@pytest.mark.parametrize(
    ("text", "anchors"),
    [
        ("Source: design#failover; design#promise-7.", ["failover", "promise-7"]),
        ('source: "design#failover: never; Karmada: other"', ["failover"]),
        ("a row of `docs/design.md`, as it was redesigned", []),
    ],
)
def test_a_citation_is_read_as_people_write_it(text: str, anchors: list[str]) -> None:
    assert CITATION.findall(text) == anchors
    assert not LOOSE.search(text)
