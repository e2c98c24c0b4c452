"""The events of a journal, in the order of their recording, up to a limit. Source: design#history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import ENDS, MADE, ORDERS, Event, EventKind
from reconciler.clock import epoch_s, rfc3339
from reconciler.journal.rows import EVENT, OUTBOX, json_text, value_of
from reconciler.journal.sqlite_file import JournalFile

APART_MAX: Final = 10_000
"""The number of orders of persons, and of beginnings of what still lasts, that are kept beyond the limits."""
_COUNTED_MAX: Final = 100_000
"""Of so many of the newest events it is counted how many an hour has."""
_STEPS: Final = 100
"""Events are dropped a hundredth of the limit at a time: most commits drop none, and delete nothing."""
_LASTING: Final[Mapping[EventKind, EventKind]] = {**ENDS, EventKind.RESUMED: EventKind.SUSPENDED}
"""Each end of what lasts, with its beginning."""


class EventFilter(NamedTuple):
    """A filter of events; an empty field does not restrict them, and all others must match.

    `about`: a subject as it is, and in every cluster (`Deployment demo/web` is also about `Deployment demo/web @ m1`).
    `cluster`: objects there, the cluster itself, and placements that name it. `since`, `until`: RFC 3339
    UTC; an event at `until` is later.
    """

    subject: str = ""
    kinds: tuple[str, ...] = ()
    about: str = ""
    cluster: str = ""
    namespace: str = ""
    since: str = ""
    until: str = ""


class Recorded(NamedTuple):
    """An event with its number in the journal; later events have higher ones."""

    number: int
    event: Event


def record(file: JournalFile, events: Iterable[Event]) -> range:
    """Append events; one commit. Return their numbers."""
    with file.transaction():
        first = file.last(EVENT) + 1
        rows = [
            (first + offset, event.round, event.time, event.kind, event.subject, json_text(event.data))
            for offset, event in enumerate(events)
        ]
        file.put(EVENT, rows)
    return range(first, first + len(rows))


def prune(file: JournalFile, limits: HistoryLimits, now: str, apart_max: int = APART_MAX) -> None:
    """Delete the events beyond the limits, but for the newest one, whose number the next ones follow.

    `apart_max`: for orders of persons and beginnings of what still lasts. `now`: RFC 3339.
    """
    last = file.last(EVENT)
    oldest = last + 1 - limits.events_max
    file.execute(f"DELETE FROM event WHERE id < ? AND kind NOT IN ({_sql(ORDERS)}) AND NOT {_LASTS}", (oldest,))  # noqa: S608 - constants
    beyond = "SELECT id FROM event WHERE id < ? ORDER BY id DESC LIMIT -1 OFFSET ?"
    file.execute(f"DELETE FROM event WHERE id IN ({beyond})", (oldest, apart_max))  # noqa: S608 - constants
    if limits.age_s is not None:
        since = rfc3339(epoch_s(now) - limits.age_s)
        young = file.execute("SELECT id FROM event WHERE time >= ? ORDER BY id LIMIT 1", (since,))
        file.execute(f"DELETE FROM event WHERE id < ? AND NOT {_LASTS}", (young[0][0] if young else last,))  # noqa: S608 - constants


def _sql(kinds: Iterable[EventKind]) -> str:
    return ", ".join(f"'{kind}'" for kind in sorted(kinds))


_BEGUN_SQL: Final = " ".join(f"WHEN '{end}' THEN '{begin}'" for end, begin in _LASTING.items())
_LATER: Final = "SELECT 1 FROM event AS later WHERE later.subject = event.subject AND later.id > event.id"
_IS_OPEN: Final = f"NOT EXISTS ({_LATER} AND CASE later.kind {_BEGUN_SQL} ELSE later.kind END = event.kind)"
"""A beginning has no end yet, and did not begin again."""
_LASTS: Final = f"(kind IN ({_sql(_LASTING.values())}) AND {_IS_OPEN})"


class EventTable:
    """The events of a journal."""

    _file: JournalFile
    _limits: HistoryLimits = HistoryLimits()

    def record_events(self, events: Iterable[Event]) -> None:
        """Append events; one commit. Delete those beyond the limits, now and then."""
        recorded = tuple(events)
        if not recorded:
            return
        with self._file.transaction():
            numbers, step = record(self._file, recorded), max(1, self._limits.events_max // _STEPS)
            if numbers.start // step != numbers.stop // step and numbers.stop > self._limits.events_max:
                prune(self._file, self._limits, recorded[-1].time)

    def keep_history(self, limits: HistoryLimits, now: str) -> None:
        """Keep so much history from now on, also after a restart. `now`: RFC 3339."""
        with self._file.transaction():
            if limits != self._limits:
                self._file.put_json(LIMITS, limits)
                self._limits = limits
                prune(self._file, limits, now)

    def lasting(self, kinds: Collection[EventKind]) -> tuple[Event, ...]:
        """Return the last beginning of each subject and kind that has no end yet, oldest first."""
        rows = self._file.rows(EVENT, f"WHERE kind IN ({_sql(kinds)}) AND {_IS_OPEN} ORDER BY id")
        return tuple(value_of(EVENT, row, Event) for row in rows)

    def last_releases(self) -> tuple[Event, ...]:
        """Return the release of each object that was not written again since, newest first."""
        is_last = f"NOT EXISTS ({_LATER} AND later.kind IN ({_sql(MADE)}))"
        rows = self._file.rows(EVENT, f"WHERE kind = '{EventKind.RELEASED}' AND {is_last} ORDER BY id DESC")
        return tuple(value_of(EVENT, row, Event) for row in rows)

    def events(self, *, subject: str = "", kind: str = "", about: str = "", limit: int = 100) -> tuple[Event, ...]:
        """The newest events, newest first; empty: any. `about` is a subject with or without its cluster."""
        wanted = EventFilter(subject=subject, kinds=(kind,) if kind else (), about=about)
        return tuple(recorded.event for recorded in self.newest_events(wanted, limit))

    def newest_events(self, wanted: EventFilter, limit: int) -> tuple[Recorded, ...]:
        """At most so many events that are meant, newest first."""
        where, values = _where(wanted)
        rows = self._file.rows(EVENT, f"{where} ORDER BY id DESC LIMIT ?", (*values, limit))
        return tuple(Recorded(row[0], value_of(EVENT, row, Event)) for row in rows)

    def events_after(self, number: int, wanted: EventFilter, limit: int = -1) -> tuple[Recorded, ...]:
        """The events that are meant and were recorded after that one, oldest first; `limit`: at most so many."""
        where, values = _where(wanted)
        rows = self._file.rows(EVENT, f"{where} AND id > ? ORDER BY id LIMIT ?", (*values, number, limit))
        return tuple(Recorded(row[0], value_of(EVENT, row, Event)) for row in rows)

    def hour_counts(self, wanted: EventFilter) -> tuple[tuple[str, str, str, int], ...]:
        """Return hour (`2026-11-23T10`), subject and kind of events that are meant, and how many there are of each."""
        where, values = _where(wanted)
        sql = f"SELECT substr(time, 1, 13), subject, kind, count(*) FROM event {where} AND id > ? GROUP BY 1, 2, 3"  # noqa: S608 - placeholders
        return tuple(self._file.execute(sql, (*values, self.last_event - _COUNTED_MAX)))

    @property
    def last_event(self) -> int:
        """Return the number of the last recorded event; 0: none."""
        return self._file.last(EVENT)

    def delivered(self, receiver: str) -> int | None:
        """Return the number of the last event delivered to a receiver; None: not known."""
        rows = self._file.rows(OUTBOX, "WHERE receiver = ?", (receiver,))
        return int(rows[0][1]) if rows else None

    def record_delivered(self, receiver: str, number: int) -> None:
        """Record that all events up to that number were delivered to a receiver."""
        with self._file.transaction():
            self._file.put(OUTBOX, [(receiver, number)])

    def keep_receivers(self, receivers: Iterable[str]) -> None:
        """Delete all other receivers: one that is named again later begins with the events of that time."""
        names = set(receivers)
        gone = [(row[0],) for row in self._file.rows(OUTBOX) if row[0] not in names]
        if gone:
            with self._file.transaction():
                self._file.remove(OUTBOX, gone)

    def subjects(self) -> tuple[str, ...]:
        """Everything that an event of the audit trail is about, in whichever cluster, sorted.

        The index is read at one place for each, not for each event.
        """
        return tuple(row[0].partition(" @ ")[0] for row in self._file.execute(_SUBJECTS))


LIMITS: Final = "history"
_SUBJECTS: Final = """
WITH RECURSIVE found(subject) AS (
    SELECT min(subject) FROM event
    UNION ALL
    SELECT (SELECT min(subject) FROM event WHERE subject > substr(found.subject, 1, CASE instr(found.subject, ' @ ')
        WHEN 0 THEN length(found.subject) ELSE instr(found.subject, ' @ ') - 1 END) || ' @!')
    FROM found WHERE found.subject IS NOT NULL
)
SELECT subject FROM found WHERE subject IS NOT NULL"""


def _where(wanted: EventFilter) -> tuple[str, tuple[str | int, ...]]:
    conditions: list[str] = ["TRUE"]
    values: list[str | int] = []

    def add(condition: str, *more: str | int) -> None:
        conditions.append(condition)
        values.extend(more)

    if wanted.subject:
        add("subject = ?", wanted.subject)
    if wanted.kinds:
        # By its subject an event is found sooner than by its kind: thousands have each.
        column = "+kind" if wanted.subject or wanted.about else "kind"
        add(f"{column} IN ({', '.join('?' for _ in wanted.kinds)})", *wanted.kinds)
    if wanted.about:
        # A range, so that the index over subjects serves it: '!' comes right after the space.
        about = wanted.about
        add("(subject = ? OR subject >= ? AND subject < ?)", about, f"{about} @ ", f"{about} @!")
    if wanted.cluster:
        name, there = wanted.cluster, f" @ {wanted.cluster}"
        add(
            "(subject = ? OR substr(subject, ?) = ? OR kind = ? AND instr(data, ?) > 0)",
            *(f"cluster {name}", -len(there), there, EventKind.PLACED.value, json_text({"cluster": name})[1:-1]),
        )
    if wanted.namespace:
        name, itself = f"{wanted.namespace}/", f"Namespace {wanted.namespace}"
        add(
            "(substr(subject, instr(subject, ' ') + 1, ?) = ? OR subject = ? OR subject >= ? AND subject < ?)",
            *(len(name), name, itself, f"{itself} @ ", f"{itself} @!"),
        )
    if wanted.since:
        add("time >= ?", wanted.since)
    if wanted.until:
        add("time < ?", wanted.until)
    return f"WHERE {' AND '.join(conditions)}", tuple(values)
