"""The events of a journal, in the order of their recording, up to a limit.

Source: design#history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from reconciler.api.ledger import ORDERS, Event, EventKind
from reconciler.journal.rows import EVENT, OUTBOX, event_value, json_text
from reconciler.journal.sqlite_file import JournalFile

EVENTS_MAX: Final = 100_000
"""The number of events, closed intents and rounds that are kept, each; older ones are deleted."""
ORDERS_MAX: Final = 10_000
"""The number of orders of persons that are kept beyond that."""
_STEPS: Final = 100
"""Events are dropped a hundredth of the limit at a time: most commits drop none, and delete nothing."""
_ORDERS_SQL: Final = ", ".join(f"'{kind}'" for kind in sorted(ORDERS))


class EventFilter(NamedTuple):
    """A filter of events; an empty field does not restrict them, and all others must match.

    `about`: a subject as it is, and in every cluster (`Deployment demo/web` is also about `Deployment demo/web @ m1`).
    `cluster`: objects there, the cluster itself, and placements that name it. `since`: RFC 3339 UTC.
    """

    subject: str = ""
    kinds: tuple[str, ...] = ()
    about: str = ""
    cluster: str = ""
    namespace: str = ""
    since: str = ""


class Recorded(NamedTuple):
    """An event with its number in the journal; later events have higher ones."""

    number: int
    event: Event


def record(
    file: JournalFile, events: Iterable[Event], events_max: int = EVENTS_MAX, orders_max: int = ORDERS_MAX
) -> None:
    """Append events; one commit. Delete those beyond the limits: `orders_max` for orders of persons."""
    with file.transaction():
        first = _last(file) + 1
        rows = [
            (first + offset, event.round, event.time, event.kind, event.subject, json_text(event.data))
            for offset, event in enumerate(events)
        ]
        end = first + len(rows)
        if not rows:
            return
        file.put(EVENT, rows)
        step = max(1, events_max // _STEPS)
        if first // step != end // step and end > events_max:
            _prune(file, end - events_max, orders_max)


def _prune(file: JournalFile, oldest: int, orders_max: int) -> None:
    file.execute(f"DELETE FROM event WHERE id < ? AND kind NOT IN ({_ORDERS_SQL})", (oldest,))  # noqa: S608 - constants
    beyond = f"SELECT id FROM event WHERE id < ? AND kind IN ({_ORDERS_SQL}) ORDER BY id DESC LIMIT -1 OFFSET ?"  # noqa: S608 - constants
    file.execute(f"DELETE FROM event WHERE id IN ({beyond})", (oldest, orders_max))  # noqa: S608 - constants


class EventBook:
    """The events of a journal."""

    _file: JournalFile
    _events_max: int = EVENTS_MAX
    _orders_max: int = ORDERS_MAX

    def record_events(self, events: Iterable[Event]) -> None:
        """Append events; one commit. Delete those beyond the limit, orders of persons last."""
        record(self._file, events, self._events_max, self._orders_max)

    def events(self, *, subject: str = "", kind: str = "", about: str = "", limit: int = 100) -> tuple[Event, ...]:
        """The newest events, newest first; empty: any. `about` is a subject with or without its cluster."""
        wanted = EventFilter(subject=subject, kinds=(kind,) if kind else (), about=about)
        return tuple(found.event for found in self.newest_events(wanted, limit))

    def newest_events(self, wanted: EventFilter, limit: int) -> tuple[Recorded, ...]:
        """At most so many events that are meant, newest first."""
        where, values = _where(wanted)
        rows = self._file.rows(EVENT, f"{where} ORDER BY id DESC LIMIT ?", (*values, limit))
        return tuple(Recorded(row[0], event_value(row)) for row in rows)

    def events_after(self, number: int, wanted: EventFilter, limit: int = -1) -> tuple[Recorded, ...]:
        """The events that are meant and were recorded after that one, oldest first; `limit`: at most so many."""
        where, values = _where(wanted)
        rows = self._file.rows(EVENT, f"{where} AND id > ? ORDER BY id LIMIT ?", (*values, number, limit))
        return tuple(Recorded(row[0], event_value(row)) for row in rows)

    @property
    def last_event(self) -> int:
        """Return the number of the last recorded event; 0: none."""
        return _last(self._file)

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
        kept = set(receivers)
        gone = [(row[0],) for row in self._file.rows(OUTBOX) if row[0] not in kept]
        if gone:
            with self._file.transaction():
                self._file.remove(OUTBOX, gone)

    def subjects(self) -> tuple[str, ...]:
        """Everything that an event of the audit trail is about, sorted."""
        return tuple(row[0] for row in self._file.execute("SELECT DISTINCT subject FROM event ORDER BY subject"))


def _last(file: JournalFile) -> int:
    return int(file.execute("SELECT max(id) FROM event")[0][0] or 0)


def _where(wanted: EventFilter) -> tuple[str, tuple[str | int, ...]]:
    """The condition in SQL, and its values."""
    conditions: list[str] = ["TRUE"]
    values: list[str | int] = []

    def add(condition: str, *given: str | int) -> None:
        conditions.append(condition)
        values.extend(given)

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
    return f"WHERE {' AND '.join(conditions)}", tuple(values)
