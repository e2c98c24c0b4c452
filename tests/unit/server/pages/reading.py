"""A page as a browser's parser sees it, and all pages of all fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

from reconciler.report.views import DayView, HistoryQuery, MatrixQuery, NotFound
from reconciler.server.pages import (
    cluster_page,
    fleet_page,
    history_page,
    not_found_page,
    not_shown_page,
    object_page,
    problems_page,
)
from tests.fakes import views
from tests.fakes.views import NOW, Views

VOID = {"meta", "link", "input", "br", "wbr"}


class Element(NamedTuple):
    """`within`: the tags around it, the outermost first."""

    tag: str
    attributes: dict[str, str]
    within: tuple[str, ...]


class Page(HTMLParser):
    """Elements, texts and where they stand; raises where tags do not fit each other."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    @property
    def text(self) -> str:
        return " ".join("".join(text for _, text in self.texts).split())

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Tags and names of attributes: all that is markup, but for where a path may break."""
        return [(each.tag, tuple(each.attributes)) for each in self.elements if each.tag != "wbr"]


def drawn(found: Views) -> dict[str, str]:
    """Every page of these views."""
    asked = MatrixQuery(q="w", namespace="shop", kind="Deployment", troubles=True)
    return {
        "fleet": fleet_page(found.fleet, found.matrix, MatrixQuery(), NOW),
        "fleet narrowed": fleet_page(found.fleet, found.matrix, asked, NOW),
        "fleet before a round": fleet_page(found.fleet, None, MatrixQuery(), NOW),
        "object": object_page(found.fleet, found.object, found.live, NOW),
        "cluster": cluster_page(found.fleet, found.cluster, NOW),
        "problems": problems_page(found.fleet, found.problems, NOW),
        "history": history_page(found.fleet, found.fleet.events, HistoryQuery(cluster="m1"), views.day(), NOW),
        "history of nothing": history_page(found.fleet, (), HistoryQuery(), DayView(by="cluster", hours=()), NOW),
        "not found": not_found_page(found.fleet, NotFound(why="there is none", close=("Deployment/web -n shop",)), NOW),
        "not shown": not_shown_page(found.fleet, "the journal cannot be read", NOW),
    }


def every_page() -> Iterator[tuple[str, str]]:
    for made in (views.empty, views.calm, views.three_clusters, views.broken):
        for name, html in drawn(made()).items():
            yield f"{made.__name__}, {name}", html
