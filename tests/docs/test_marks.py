"""The page on marks names every mark of another tool in the order in which they count."""

from __future__ import annotations

import re

from reconciler.ownership.marks import FOREIGN_MARKS, ForeignMark
from tests.docs.pages import ROOT

WORDS = {"labels": "label", "annotations": "annotation", "ownerReferences": "owner"}


def written(mark: ForeignMark) -> tuple[str, str]:
    value = f": {mark.value}" if mark.value else f": {mark.begins}…" if mark.begins else ""
    return mark.tool, f"{WORDS[mark.place]} `{mark.key}{value}`"


def test_the_page_names_every_mark_of_another_tool_in_order() -> None:
    section = (ROOT / "docs/reference/marks.md").read_text(encoding="utf-8").partition("## Marks of other tools")[2]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
    shown = [(tool, mark) for tool, marks in rows for mark in re.findall(r"(?:label|annotation|owner) `[^`]+`", marks)]
    assert shown == [written(mark) for mark in FOREIGN_MARKS]


def test_the_how_to_names_every_tool() -> None:
    pages = ("coming-from-other-tools", "coming-from-argocd-flux", "coming-from-karmada")
    text = "".join((ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8") for page in pages)
    assert {mark.tool for mark in FOREIGN_MARKS if mark.tool not in text} == set()
