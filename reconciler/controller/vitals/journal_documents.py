"""Documents of the journal for commands and pages: resources by the names that people use, history, status.

`JournalReader` gives the HTTP API cached read-only access over a connection of its own, so that the control loop never
waits for it. Everything of it is called from one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from reconciler.api.content import Json, JsonObject
from reconciler.api.ledger import ENDS, MADE, Event, EventKind
from reconciler.api.refs import Identity, called, close_to
from reconciler.clock import Clock, epoch_s, rfc3339
from reconciler.controller import timing
from reconciler.controller.cluster_reads.read_clusters import constraints_in
from reconciler.errors import ConfigurationError, JournalError, NotShown
from reconciler.journal.events import EventFilter, Recorded
from reconciler.journal.journal_lock import holder
from reconciler.journal.sqlite_file import LOW_BYTES, lack_of_room
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import in_force
from reconciler.report.status.history_text import Words, history_document
from reconciler.report.status.remedies import STANDBY
from reconciler.report.status.status_document import StatusDocument, status_document
from reconciler.report.views.queries import DayView, HistoryQuery, NotFound, day_view, hours_of
from reconciler.report.views.view_inputs import JournalRows
from reconciler.store.source import Commits


def known_subjects(journal: Journal) -> set[Identity]:
    """Return all placed subjects, and those of events, gone or not. The group is in no subject."""
    placed = {identity._replace(group="") for identity in journal.previous_placements()}
    return placed | {subject for text in journal.subjects() if (subject := subject_of(text)) is not None}


def subject_of(text: str) -> Identity | None:
    """The resource that an event or a scope is about; None when it is about something else."""
    resource = text.partition(" @ ")[0]
    kind, _, rest = resource.partition(" ")
    namespace, _, name = rest.rpartition("/")
    return Identity("", kind, namespace, name) if kind[:1].isupper() and name else None


def one_subject(known: Iterable[Identity], resource: str, namespace: str | None) -> Identity:
    """The one that `KIND/NAME` means. Raises ConfigurationError: none of them is called so, or several are."""
    matches = called(known, resource, namespace)
    if len(matches) == 1:
        return matches[0]
    where = f" in namespace {namespace}" if namespace else ""
    if not matches:
        raise ConfigurationError(f"the journal knows nothing called {resource}{where}")
    names = ", ".join(f"{match.kind}/{match.name} -n {match.namespace}" for match in matches)
    raise ConfigurationError(f"{resource} may be: {names}; name the namespace with -n")


class HistoryPage(NamedTuple):
    """The events that were asked for, and the number after which to go on."""

    events: tuple[Recorded, ...]
    last: int

    def document(self, words: Words) -> dict[str, Json]:
        """The document of `history -o json`."""
        return history_document((recorded.event for recorded in self.events), words)


def wanted_events(journal: Journal, question: HistoryQuery) -> EventFilter:
    """Return the filter of a question.

    Raises ConfigurationError: it names a resource that the journal does not know, or several.
    """
    namespace = question.namespace or None
    named = question.resource
    about = str(one_subject(known_subjects(journal), named, namespace)) if named else ""
    return EventFilter(
        about=about,
        namespace=question.namespace if not named else "",
        cluster=question.cluster,
        since=question.since,
        until=question.until,
    )


def _wanted_or_near(journal: Journal, question: HistoryQuery) -> EventFilter:
    """As `wanted_events`; the error of an unknown resource names similar ones."""
    try:
        return wanted_events(journal, question)
    except ConfigurationError as error:
        placed = tuple(journal.previous_placements())
        near = close_to(placed, question.resource)
        if not near or called(placed, question.resource, question.namespace or None):
            raise
        raise ConfigurationError(f"{error}; did you mean {' or '.join(near)}?") from error


def events_of(journal: Journal, wanted: EventFilter, question: HistoryQuery) -> HistoryPage:
    """Return the newest events, newest first; with `after` later ones, oldest first (a rebuilt one counts again)."""
    last = journal.last_event
    if question.after is None:
        return HistoryPage(journal.newest_events(wanted, question.limit), last)
    later = journal.events_after(min(question.after, last), wanted, min(question.limit + 1, sys.maxsize))
    page = later[: question.limit]
    return HistoryPage(page, page[-1].number if len(page) < len(later) else last)


class JournalHistory:
    """The history of a journal that is here."""

    def __init__(self, path: Path, commits: Callable[[str], Commits]) -> None:
        """`commits`: of the store that the journal's picture names."""
        self._path, self._commits_of = path, commits
        self._known: tuple[EventFilter, Commits] | None = None

    def ask(self, question: HistoryQuery) -> tuple[dict[str, Any], int]:
        """Return the document, and the number to go on after. Later questions are about what the first one selects."""
        # Opened each time: the service may be started again meanwhile, and a rebuilt journal is another file.
        with Journal.open(self._path, read_only=True) as opened, opened.transaction():
            if self._known is None:
                source = (opened.state() or {}).get("source", "")
                self._known = _wanted_or_near(opened, question), self._commits_of(source)
            wanted, commits = self._known
            page = events_of(opened, wanted, question)
        commits.look_again()
        return page.document(commits.words), page.last


def picture_in(journal: Journal) -> JsonObject:
    """The picture of the last round. Raises JournalError: there is none yet."""
    picture = journal.state()
    if picture is None and journal.led_by:
        raise JournalError(f"{journal.path}: its process stands by, led by {journal.led_by}; {STANDBY}")
    if picture is None:
        raise JournalError(
            f"{journal.path}: no round has been recorded yet; 'reconciler apply' or 'run' makes the first"
        )
    return picture


def status_of(journal: Journal, commits: Commits, now: str) -> dict[str, Json]:
    """The document of `status -o json`. The journal is read in one view, which the caller opens.

    Raises JournalError: no round was recorded yet, or it cannot be read.
    """
    picture = picture_in(journal)
    edits = EventFilter(kinds=(EventKind.DRIFT,), since=rfc3339(epoch_s(now) - timing.THOROUGH_S))
    no_room = f"{full}; while it cannot be written nothing is applied" if (full := lack_of_room(journal.path)) else ""
    status = StatusDocument(
        picture=picture,
        fleet=journal.fleet,
        journal=str(journal.path),
        writer=str(holder(journal.path) or ""),
        led_by=journal.led_by,
        no_room=no_room or lack_of_room(journal.path, LOW_BYTES),
        words=commits.words,
        last_change=commits.last_change,
        edits=tuple(recorded.event for recorded in journal.newest_events(edits, _NEWEST)),
        suspensions=in_force(journal.suspensions(), now),
        constraints=in_force(constraints_in(journal), now),
        released=journal.last_releases(),
    )
    return status_document(status)


_NEWEST: Final = 20
_WRITES_MAX: Final = 1000
_BEGINNINGS: Final = frozenset({*ENDS.values(), EventKind.FAILED, EventKind.SUSPENDED})
_FOLLOWED: Final = tuple(map(str, (*sorted(_BEGINNINGS), *sorted(ENDS), EventKind.RESUMED)))

_Answer = TypeVar("_Answer")


class JournalReader:
    """The journal of a service, and the commits that it names."""

    def __init__(self, path: Path, commits: Commits, clock: Clock) -> None:
        self._path, self._commits, self._clock = path, commits, clock
        self.words, self.last_change = commits.words, commits.last_change
        self._journal: Journal | None = None
        self._version = -1
        self._rows = JournalRows()
        self._begun: dict[tuple[str, str], Event] = {}
        self._last = 0

    def rows(self) -> JournalRows:
        """The rows as they are now; the same value while nothing of them changes. Where there are none, it says why."""
        try:
            return self._query(self._read_rows)
        except NotShown as error:
            if self._rows.error != str(error):
                self._rows, self._version = JournalRows(error=str(error)), -1
            return self._rows

    def status(self) -> dict[str, Any]:
        """The document of `status -o json`.

        Raises NotShown: the journal cannot be read, or no round was recorded yet.
        """
        return self._query(lambda journal: status_of(journal, self._commits, self._clock.now()))

    def history(self, question: HistoryQuery) -> tuple[dict[str, Any], int] | NotFound:
        """The document of `history -o json`, and the number after which to go on.

        Raises NotShown: the journal cannot be read.
        """

        def read_events(journal: Journal) -> HistoryPage | NotFound:
            try:
                return events_of(journal, wanted_events(journal, question), question)
            except ConfigurationError as error:
                return NotFound(why=str(error), close=close_to(journal.previous_placements(), question.resource))

        page = self._query(read_events)
        return page if isinstance(page, NotFound) else (page.document(self._commits.words), page.last)

    def day(self, by: str) -> DayView:
        """Return the events of the last 24 hours by the hour. `by`: `cluster` or `object`.

        Raises NotShown: the journal cannot be read.
        """
        now = self._clock.now()
        counts = self._query(lambda journal: journal.hour_counts(EventFilter(since=hours_of(now)[0])))
        return day_view(counts, by, now)

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
            newest = self._query(lambda journal: journal.newest_events(wanted, limit))
        except NotShown:
            return ()
        return tuple(each.event for each in newest)

    def _query(self, question: Callable[[Journal], _Answer]) -> _Answer:
        try:
            if self._journal is None:
                self._journal = Journal.open(self._path, read_only=True, busy_s=timing.SLOW_S)
                self._version, self._last, self._begun = -1, 0, {}
            with self._journal.transaction():
                return question(self._journal)
        except JournalError as error:
            self.close()
            raise NotShown(str(error)) from error

    def _read_rows(self, journal: Journal) -> JournalRows:
        now, known = self._clock.now(), self._rows
        version = journal.data_version
        in_time = len(in_force(known.suspensions, now)) + len(in_force(known.constraints, now))
        if version == self._version and in_time == len(known.suspensions) + len(known.constraints):
            return known
        self._commits.look_again()
        self._follow(journal)
        self._version = version
        self._rows = JournalRows(
            suspensions=in_force(journal.suspensions(), now),
            evictions=in_force(journal.evictions(), now),
            constraints=in_force(constraints_in(journal), now),
            timers=journal.timers(),
            held_since=journal.losses().held_since,
            begun=MappingProxyType(self._begun),
            events=tuple(recorded.event for recorded in journal.newest_events(EventFilter(), _NEWEST)),
        )
        return self._rows

    def _follow(self, journal: Journal) -> None:
        """Read the beginnings and ends since the last call; at first, the beginnings without an end."""
        begun, last = dict(self._begun), journal.last_event
        if not self._last:
            begun = {(EventKind(each.kind), each.subject): each for each in journal.lasting(_BEGINNINGS)}
            self._last = last
        for _, event in journal.events_after(self._last, EventFilter(kinds=_FOLLOWED)):
            kind = EventKind(event.kind)
            if kind in _BEGINNINGS:
                begun[kind, event.subject] = event
            else:
                begun.pop((ENDS.get(kind, EventKind.SUSPENDED), event.subject), None)
        self._begun, self._last = begun, last
