"""The journal: state between rounds, in one SQLite file with one writer.

Everything is called from one thread. Steps that belong together go into one `transaction`. Commands that only read open
the file read-only while the daemon writes. It never holds a Secret value: manifests pass `recorded_form` here, for
every caller.
"""

from __future__ import annotations

import secrets
import uuid
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from reconciler.api.binding import Constraint, PreviousPlacement
from reconciler.api.content import JsonObject
from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, EventKind
from reconciler.api.plan import Cause, Change
from reconciler.api.refs import Identity
from reconciler.errors import JournalCorrupt, JournalError
from reconciler.journal.applied import UNUSED, broken_manifests
from reconciler.journal.events import LIMITS, EventTable, prune
from reconciler.journal.journal_lock import JournalLock, refuse_network_file_system
from reconciler.journal.locks import OrdersTable
from reconciler.journal.mirror import Mirror, Placements, SharedCommits
from reconciler.journal.rows import BINDING, CLUSTER, CONSTRAINT, ROUND, TABLES, TIMER, columns_of, json_text, value_of
from reconciler.journal.sqlite_file import BUSY_TIMEOUT_S, META, JournalFile, Row, SqlTable
from reconciler.journal.trail import IntentTable


class Journal(EventTable, OrdersTable, IntentTable):
    """An open journal. Use `Journal.open`."""

    def __init__(self, file: JournalFile, lock: JournalLock | None) -> None:
        self._file = file
        self._lock = lock
        self._mirror = Mirror(is_kept=not file.read_only)
        self.shared_commits = SharedCommits(self.begin, lambda: self.transaction(durable=True))

    @classmethod
    def open(
        cls, path: Path, *, read_only: bool = False, lock: JournalLock | None = None, busy_s: float = BUSY_TIMEOUT_S
    ) -> Journal:
        """The journal at the path; a writer creates it and takes its lock, unless it brings the `lock` along.

        `busy_s`: so long a reader waits for others who write.

        Raises:
            JournalLocked: another process writes it.
            JournalCorrupt: a page or a row is broken; only `rebuild` moves the file aside.
            JournalTooNew: a newer version wrote it; read-only works as far as the tables are known.
            JournalError: anything else that keeps it from being used.
        """
        if read_only:
            return cls(JournalFile(path, read_only=True, tables=TABLES, busy_s=busy_s), None)
        if path.parent.is_dir():
            refuse_network_file_system(path)
        else:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as exc:
                raise JournalError(f"{path.parent}: {exc.strerror}; name another place with --journal") from exc
            refuse_network_file_system(path.parent)
        own_lock = lock or JournalLock(path)
        try:
            journal = cls(JournalFile(path, read_only=False, tables=TABLES), own_lock)
            journal._prepare()
        except JournalError:
            if lock is None:
                own_lock.close()
            raise
        return journal

    def _prepare(self) -> None:
        try:
            if not self._meta("uuid"):
                with self.transaction(durable=True):
                    self._file.put(META, [("uuid", str(uuid.uuid4())), ("hash_key", secrets.token_hex(32))])
            elif self._file.execute(f"SELECT 1 FROM manifest WHERE {UNUSED} LIMIT 1"):  # noqa: S608 - constants
                self._file.execute(f"DELETE FROM manifest WHERE {UNUSED}")  # noqa: S608 - constants
            limits = self._file.value(LIMITS)
            self._limits = HistoryLimits(**msgspec.json.decode(limits)) if limits else HistoryLimits()
        except JournalError:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file and let the next writer in."""
        try:
            self._file.close()
        finally:
            if self._lock is not None:
                self._lock.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What the journal is

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def is_too_new(self) -> bool:
        """Return whether a newer version wrote it; such a journal is open for reading only."""
        return self._file.is_too_new

    @property
    def data_version(self) -> int:
        """A number that changes when another process has written: an order came or went."""
        return self._file.pragma("data_version")

    @property
    def version(self) -> str:
        """Return a number that changes with every write, by this process or another one."""
        return f"{self._file.execute('SELECT total_changes()')[0][0]} {self.data_version}"

    @property
    def uuid(self) -> str:
        """Names this journal for ever; the members' ConfigMaps hold it."""
        return self._meta("uuid")

    @property
    def fleet(self) -> str:
        """The fleet that this journal belongs to; empty before the first `record_fleet`."""
        return self._meta("fleet")

    def record_fleet(self, name: str) -> None:
        """Bind the journal to a fleet, or to its new name."""
        with self.transaction(durable=True):
            self._file.put(META, [("fleet", name)])
            self._mirror.meta["fleet"] = name

    def take_over(self, salvaged: Mapping[SqlTable, list[Row]]) -> None:
        """Continue for a journal that was set aside: with its uuid and key, and all other readable rows."""
        with self.transaction(durable=True):
            for table, rows in salvaged.items():
                self._file.put(table, rows)
        self._mirror.forget()

    # Decisions that outlive a round

    def record_bindings(self, revision: str, placements: Placements) -> None:
        """Replace all placements; equal ones are not written again."""
        gone: dict[Identity, PreviousPlacement | None] = dict.fromkeys(self.previous_placements().keys() - placements)
        self.patch_bindings(revision, {**gone, **placements})

    def patch_bindings(
        self, revision: str, changes: Mapping[Identity, PreviousPlacement | None]
    ) -> frozenset[Identity]:
        """Replace these placements (None: delete it). Return the changed ones; equal ones are not written again."""
        known = self.previous_placements()
        differing = {identity: changes[identity] for identity in sorted(changes)
                     if changes[identity] != known.get(identity)}  # fmt: skip
        with self.transaction():
            self._file.remove(BINDING, [identity for identity, placement in differing.items() if placement is None])
            written = [placement for placement in differing.values() if placement is not None]
            self._file.put(BINDING, [columns_of(BINDING, one, revision=revision) for one in written])
            self._mirror.placed(differing)
        return frozenset(differing)

    def previous_placements(self) -> Placements:
        """The placements of the last round that recorded any, sorted."""
        return self._mirror.placements.of(self._read_placements)

    def _read_placements(self) -> dict[Identity, PreviousPlacement]:
        rows = self._file.rows(BINDING, "ORDER BY api_group, kind, namespace, name")
        return {one.identity: one for one in (value_of(BINDING, row, PreviousPlacement) for row in rows)}

    def record_constraints(self, constraints: tuple[Constraint, ...]) -> None:
        """Replace all constraints of ticks."""
        rows = [columns_of(CONSTRAINT, constraint, position=number) for number, constraint in enumerate(constraints)]
        self._file.replace(CONSTRAINT, self._file.rows(CONSTRAINT), rows)

    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints in the order in which they were recorded."""
        rows = self._file.rows(CONSTRAINT, "ORDER BY position")
        return tuple(value_of(CONSTRAINT, row, Constraint) for row in rows)

    def commit_behind(self, change: Change, revision: str) -> str:
        """Return the revision that an object follows: healing, ticks and marks bring it none newer than its own."""
        is_moved = change.cause is Cause.PLACEMENT and change.identity in {one.identity for one in self.constraints()}
        if change.cause not in (Cause.DRIFT, Cause.OWNERSHIP) and not is_moved:
            return revision
        rows = (self.ledger().get(name, {}).get(change.identity) for name in (change.cluster, *self.ledger()))
        return next((row.revision for row in rows if row is not None and row.revision), revision)

    def record_timers(self, timers: Mapping[str, str]) -> None:
        """Replace all timers: name to the RFC 3339 time since which something holds."""
        self._file.replace(TIMER, self._file.rows(TIMER), sorted(timers.items()))

    def timers(self) -> dict[str, str]:
        """All timers by name."""
        return dict(self._file.rows(TIMER, "ORDER BY name"))

    def record_clusters(self, uids: Mapping[str, str]) -> None:
        """Remember the uid of kube-system under which a cluster answered first; durable at once."""
        if new := sorted(uids.keys() - self.cluster_uids().keys()):
            with self.transaction(durable=True):
                self._file.put(CLUSTER, [(name, uids[name]) for name in new])

    def cluster_uids(self) -> dict[str, str]:
        """Cluster name to the uid of its kube-system."""
        return dict(self._file.rows(CLUSTER, "ORDER BY name"))

    # Rounds

    def record_event(self, kind: EventKind, subject: str, data: Mapping[str, Any], now: str) -> Event:
        """Record an event beside the last complete round, and return it."""
        event = Event(round=self.complete_rounds(), time=now, kind=kind, subject=subject, data=data)
        self.record_events([event])
        return event

    def record_round(self, revision: str, time: str, summary: JsonObject) -> int:
        """The number of the round, which is now recorded as complete."""
        with self.transaction():
            number = self.complete_rounds() + 1
            self._file.put(ROUND, [(number, revision, time, json_text(summary))])
            self._file.execute("DELETE FROM round WHERE number <= ?", (number - self._limits.events_max,))
            if number % _ROUNDS_BETWEEN_TIDYING == 0:
                self._tidy(time)
        return number

    # Care

    def compact(self, now: str) -> None:
        """Delete what nothing needs any more, and give its space back. As much again is needed meanwhile.

        Raises JournalError: the disk has no room; the journal is as it was.
        """
        with self.transaction():
            self._tidy(now)
        self._file.vacuum()

    def _tidy(self, now: str) -> None:
        self._file.execute(f"DELETE FROM manifest WHERE {UNUSED}")  # noqa: S608 - constants
        prune(self._file, self._limits, now)

    def verify(self) -> tuple[str, ...]:
        """Everything that is wrong with the file, in words; empty when nothing is."""
        answers = [str(row[0]) for row in self._file.execute("PRAGMA integrity_check(20)")]
        problems = [] if answers == ["ok"] else answers
        for table in TABLES:
            try:
                deque(self._file.each_row(table), maxlen=0)
            except JournalCorrupt as exc:
                problems.append(str(exc))
        problems.extend(broken_manifests(self._file))
        return tuple(problems)

    def reset(self) -> None:
        """Delete objects, placements, timers and rounds, to be rebuilt from the members' marks.

        Our identity (uuid, fleet), the clusters' uids, suspensions and the audit trail stay; so do the records of
        rollouts, since an unreachable cluster cannot report its own: of record and mark the later one counts.
        """
        with self.transaction(durable=True):
            for name in _REBUILT:
                self._file.execute(f"DELETE FROM {name}")  # noqa: S608 - constants
        self._mirror.forget()


_ROUNDS_BETWEEN_TIDYING = 500
_REBUILT = ("applied", "manifest", "binding", "tick_constraint", "timer", "good_blob", "intent", "round", "state")
