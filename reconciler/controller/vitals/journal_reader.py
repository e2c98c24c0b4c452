"""Cached read-only access to the journal for the HTTP API.

It has its own connection. The control loop never waits for it. Everything is called from one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from reconciler.api.ledger import ENDS, MADE, Event, EventKind
from reconciler.clock import Clock, rfc3339
from reconciler.controller import timing
from reconciler.controller.reading.read_clusters import constraints_in
from reconciler.controller.vitals.journal_documents import HistoryPage, events_of, status_of, wanted_events
from reconciler.errors import ConfigurationError, JournalError, NotShown
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import in_force
from reconciler.report.naming import close_to
from reconciler.report.views.questions import HistoryQuestion, NotFound
from reconciler.report.views.view_inputs import CommitWords, JournalRows
from reconciler.store.uncommitted import Commits

_NEWEST: Final = 20
_WRITES_MAX: Final = 1000
_BEGINNINGS: Final = frozenset({*ENDS.values(), EventKind.FAILED, EventKind.SUSPENDED})
_FOLLOWED: Final = tuple(map(str, (*sorted(_BEGINNINGS), *sorted(ENDS), EventKind.RESUMED)))

_Answer = TypeVar("_Answer")


class JournalReader:
    """The journal of a service, and the commits that it names."""

    def __init__(self, path: Path, commits: Commits, clock: Clock) -> None:
        """Nothing is opened before the first question."""
        self._path, self._commits, self._clock = path, commits, clock
        self._journal: Journal | None = None
        self._version = -1
        self._noted = JournalRows()
        self._begun: dict[tuple[str, str], Event] = {}
        self._last = 0

    def noted(self) -> JournalRows:
        """The rows as they are now; the same value while nothing of them changes. Where there are none, it says why."""
        try:
            return self._asked(self._fresh)
        except NotShown as error:
            if self._noted.error != str(error):
                self._noted, self._version = JournalRows(error=str(error)), -1
            return self._noted

    def words(self, revision: str) -> CommitWords | None:
        """Return author, subject and time of a revision; None: no known commit."""
        found = self._commits.info(revision)
        return CommitWords(found.author, found.subject, rfc3339(found.time)) if found is not None else None

    def status(self) -> dict[str, Any]:
        """The document of `status -o json`.

        Raises:
            NotShown: the journal cannot be read, or no round was recorded yet.
        """
        return self._asked(lambda journal: status_of(journal, self._commits, self._clock.now()))

    def history(self, question: HistoryQuestion) -> tuple[dict[str, Any], int] | NotFound:
        """The document of `history -o json`, and the number after which to go on.

        Raises:
            NotShown: the journal cannot be read.
        """

        def told(journal: Journal) -> HistoryPage | NotFound:
            try:
                return events_of(journal, wanted_events(journal, question), question)
            except ConfigurationError as error:
                return NotFound(why=str(error), close=close_to(journal.previous_placements(), question.resource))

        found = self._asked(told)
        return found if isinstance(found, NotFound) else (found.document(self._commits.words), found.last)

    def events(self, *, about: str = "", cluster: str = "", limit: int) -> tuple[Event, ...]:
        """The newest events about a subject or a cluster, newest first; none where the journal cannot be read."""
        return self._newest(EventFilter(about=about, cluster=cluster), limit)

    def writes(self, about: str) -> tuple[Event, ...]:
        """Return the newest write events of an object, newest first; none if the journal cannot be read."""
        return self._newest(EventFilter(about=about, kinds=tuple(map(str, MADE))), _WRITES_MAX)

    def close(self) -> None:
        """Close the connection."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _newest(self, wanted: EventFilter, limit: int) -> tuple[Event, ...]:
        try:
            found = self._asked(lambda journal: journal.newest_events(wanted, limit))
        except NotShown:
            return ()
        return tuple(each.event for each in found)

    def _asked(self, question: Callable[[Journal], _Answer]) -> _Answer:
        """Answer from the journal, in one view of it."""
        try:
            if self._journal is None:
                self._journal = Journal.open_to_look(self._path, busy_s=timing.SLOW_S)
                self._version, self._last, self._begun = -1, 0, {}
            with self._journal.transaction():
                return question(self._journal)
        except JournalError as error:
            self.close()
            raise NotShown(str(error)) from error

    def _fresh(self, journal: Journal) -> JournalRows:
        now, known = self._clock.now(), self._noted
        version = journal.data_version
        if version == self._version:
            left = len(in_force(known.suspensions, now)) + len(in_force(known.constraints, now))
            if left < len(known.suspensions) + len(known.constraints):
                self._noted = _without_ended(known, now)
            return self._noted
        self._commits.look_again()
        self._follow(journal)
        self._version = version
        self._noted = JournalRows(
            suspensions=in_force(journal.suspensions(), now),
            evictions=in_force(journal.evictions(), now),
            constraints=in_force(constraints_in(journal), now),
            timers=journal.timers(),
            held_since=journal.losses().held_since,
            begun=MappingProxyType(self._begun),
            events=tuple(found.event for found in journal.newest_events(EventFilter(), _NEWEST)),
        )
        return self._noted

    def _follow(self, journal: Journal) -> None:
        """Read the beginnings and ends since the last call."""
        begun, last = dict(self._begun), journal.last_event
        for _, event in journal.events_after(self._last, EventFilter(kinds=_FOLLOWED)):
            kind = EventKind(event.kind)
            if kind in _BEGINNINGS:
                begun[kind, event.subject] = event
            else:
                begun.pop((ENDS.get(kind, EventKind.SUSPENDED), event.subject), None)
        self._begun, self._last = begun, last


def _without_ended(noted: JournalRows, now: str) -> JournalRows:
    return replace(
        noted,
        suspensions=in_force(noted.suspensions, now),
        evictions=in_force(noted.evictions, now),
        constraints=in_force(noted.constraints, now),
    )
