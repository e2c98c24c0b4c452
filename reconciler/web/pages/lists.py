"""Pages that are one list: problems of the store, the history; and the pages for missing content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.report.views.questions import HistoryQuestion, NotFound
from reconciler.report.views.shapes import FleetView, ProblemsView
from reconciler.web.pages.changes import changes
from reconciler.web.pages.drawing import draw
from reconciler.web.pages.head import head_of
from reconciler.web.pages.links import named_link


def problems_page(fleet: FleetView, view: ProblemsView, now: str) -> str:
    """The problems of the store as HTML. `fleet` is for its head; `now`: RFC 3339."""
    return draw("problems.html", now=now, fleet=fleet, head=head_of(fleet), view=view)


def history_page(fleet: FleetView, entries: Sequence[Mapping[str, Any]], asked: HistoryQuestion, now: str) -> str:
    """The history as HTML: the `events` of its document, newest first, that answer `asked`. `now`: RFC 3339."""
    return draw("history.html", now=now, fleet=fleet, head=head_of(fleet), events=changes(entries), asked=asked)


def not_found_page(fleet: FleetView, found: NotFound, now: str) -> str:
    """Return the page for an unknown name: the reason and similar names."""
    close = tuple((words, named_link(words)) for words in found.close)
    return draw("not_found.html", now=now, fleet=fleet, head=head_of(fleet), why=found.why, close=close)


def not_shown_page(fleet: FleetView, why: str, now: str) -> str:
    """Return the page shown before the first round has ended, or when the journal cannot be read."""
    return draw("not_shown.html", now=now, fleet=fleet, head=head_of(fleet), why=why)
