"""The answers of `history`, here and from another machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from reconciler.adapters.journal.books.events import EventFilter, Recorded
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.sources.commits import Commits
from reconciler.daemon.answers.subjects import known_subjects, one_subject
from reconciler.model.tree import Json
from reconciler.report.history_text import Words, history_document
from reconciler.report.views.questions import HistoryQuestion


class Told(NamedTuple):
    """The events that were asked for, and the number after which to go on."""

    events: tuple[Recorded, ...]
    last: int

    def document(self, words: Words) -> dict[str, Json]:
        """The document of `history -o json`."""
        return history_document((found.event for found in self.events), words)


def wanted_events(journal: Journal, question: HistoryQuestion) -> EventFilter:
    """Which events a question means.

    Raises:
        ConfigurationError: it names a resource that the journal does not know, or several.
    """
    namespace = question.namespace or None
    named = question.resource
    about = str(one_subject(known_subjects(journal), named, namespace)) if named else ""
    return EventFilter(
        about=about, namespace=question.namespace if not named else "", cluster=question.cluster, since=question.since
    )


def events_of(journal: Journal, wanted: EventFilter, question: HistoryQuestion) -> Told:
    """Return the newest matching events, newest first; with `after` the later ones, oldest first.

    A rebuilt journal counts from the beginning: `after` names no event of it, and nothing is reported twice.
    """
    last = journal.last_event
    if question.after is None:
        return Told(journal.newest_events(wanted, question.limit), last)
    found = journal.events_after(min(question.after, last), wanted)
    shown = found[: question.limit]
    return Told(shown, shown[-1].number if len(shown) < len(found) else last)


class History(Protocol):
    """A source of history."""

    def newest(self) -> tuple[dict[str, Any], int]:
        """The document, newest first, and the number after which to go on."""
        ...

    def after(self, number: int) -> tuple[dict[str, Any], int]:
        """Return the document of later events, oldest first, and the number to go on after."""
        ...


class JournalHistory:
    """The history of a journal that is here."""

    def __init__(self, path: Path, commits: Callable[[str], Commits], question: HistoryQuestion) -> None:
        """Nothing is opened before the first question. `commits`: of the store that the journal's picture names."""
        self._path, self._question = path, question
        self._commits_of = commits
        self._known: tuple[EventFilter, Commits] | None = None

    def newest(self) -> tuple[dict[str, Any], int]:
        """As `History`."""
        return self._told(self._question)

    def after(self, number: int) -> tuple[dict[str, Any], int]:
        """As `History`."""
        return self._told(replace(self._question, after=number, limit=sys.maxsize))

    def _told(self, question: HistoryQuestion) -> tuple[dict[str, Any], int]:
        # Opened each time: the service may be started anew meanwhile, and a rebuilt journal is another file.
        with Journal.open(self._path, read_only=True) as opened, opened.transaction():
            if self._known is None:
                source = (opened.state() or {}).get("source", "")
                self._known = wanted_events(opened, question), self._commits_of(source)
            wanted, commits = self._known
            told = events_of(opened, wanted, question)
        commits.look_again()
        return told.document(commits.words), told.last
