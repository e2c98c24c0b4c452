"""State that another process needs to take over a fleet, beside the marks in the clusters: small tables alone.

Owner epochs and rollouts of each cluster, timers, constraints of ticks, losses that guards count, the active content of
the store, and orders of persons: the one thing that others may write while a daemon holds the journal. Source: ADR 20.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement
from reconciler.api.ledger import (
    Event,
    EventKind,
    EvictionRecord,
    GuardsInForce,
    HoldRecord,
    Losses,
    RecordedLoss,
    ReviewConfirmation,
    SuspensionRecord,
)
from reconciler.api.plan import NOT_CONFIRMED, Confirmed
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import EarlierRevision, Record
from reconciler.clock import Clock, SystemClock
from reconciler.containment import try_call
from reconciler.fail_points import reach
from reconciler.journal.events import record
from reconciler.journal.mirror import JournalTables
from reconciler.journal.rows import (
    BINDING,
    CLUSTER,
    CONSTRAINT,
    EVICTION,
    GOOD_BLOB,
    GUARD_HOLD,
    HOLD,
    LOSS,
    ROLLOUT,
    ROLLOUT_EARLIER,
    SUSPENSION,
    TABLES,
    TIMER,
    columns_of,
    value_of,
)
from reconciler.journal.sqlite_file import META, JournalFile, Row, SqlTable

_ASKED: Final = "asked"
LED_BY: Final = "led_by"


class OrdersTable:
    """Suspensions and evictions of a journal. Who gave an order, and who took it back, is an event of history."""

    _file: JournalFile
    _clock: Clock = SystemClock()

    def ask(self, who: str) -> None:
        """Record a person's request to evaluate everything now. Durable before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(META, [(_ASKED, f"{who} {uuid.uuid4()}")])
            self._note(EventKind.ASKED, "fleet", who)

    @property
    def last_order(self) -> str:
        """Return the person of the last order, with a unique mark; empty: there is none."""
        return self._file.value(_ASKED)

    @property
    def led_by(self) -> str:
        """Return the leader of the fleet while the process of this journal stands by; empty: none."""
        return self._file.value(LED_BY)

    def suspend(self, suspension: SuspensionRecord) -> None:
        """Record an order to stop writing; it replaces one of the same scope. On the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(SUSPENSION, [columns_of(SUSPENSION, suspension)])
            self._note(EventKind.SUSPENDED, suspension.scope, suspension.who, suspension.reason, suspension.until)

    def resume(self, scope: str, who: str = "", reason: str = "") -> bool:
        """End a suspension; False when there was none."""
        with self._file.transaction(durable=True):
            is_gone = self._remove("DELETE FROM suspension WHERE scope = ?", (scope,))
            if is_gone:
                self._note(EventKind.RESUMED, scope, who, reason)
        return is_gone

    def suspensions(self) -> tuple[SuspensionRecord, ...]:
        """All suspensions, sorted by scope; expired ones too."""
        rows = self._file.rows(SUSPENSION, "ORDER BY scope")
        return tuple(value_of(SUSPENSION, row, SuspensionRecord) for row in rows)

    def evict(self, eviction: EvictionRecord) -> None:
        """Record an order that a resource leaves a cluster; it replaces an earlier one."""
        with self._file.transaction(durable=True):
            self._file.put(EVICTION, [columns_of(EVICTION, eviction)])
            subject = f"{eviction.identity} @ {eviction.cluster}"
            self._note(EventKind.EVICTED, subject, eviction.who, eviction.reason, eviction.until)

    def readmit(self, identity: Identity, cluster: str, who: str = "", reason: str = "") -> bool:
        """End an eviction; False when there was none."""
        where = "api_group = ? AND kind = ? AND namespace = ? AND name = ? AND cluster = ?"
        with self._file.transaction(durable=True):
            is_gone = self._remove(f"DELETE FROM eviction WHERE {where}", (*identity, cluster))  # noqa: S608 - constants
            if is_gone:
                self._note(EventKind.READMITTED, f"{identity} @ {cluster}", who, reason)
        return is_gone

    def evictions(self) -> tuple[EvictionRecord, ...]:
        """All evictions, sorted by resource and cluster; expired ones too. A journal of an older schema has none."""
        rows = self._file.rows(EVICTION, "ORDER BY kind, namespace, name, cluster")
        return tuple(value_of(EVICTION, row, EvictionRecord) for row in rows)

    def _remove(self, sql: str, values: tuple[str, ...]) -> bool:
        self._file.execute(sql, values)
        return bool(self._file.execute("SELECT changes()")[0][0])

    def _note(self, kind: EventKind, subject: str, who: str, why: str = "", until: str = "") -> None:
        data = {key: value for key, value in {"who": who, "why": why, "until": until}.items() if value}
        record(self._file, [Event(round=0, time=self._clock.now(), kind=kind, subject=subject, data=data)])


class SharedOrdersTable(OrdersTable):
    """The orders of a journal, open beside its writer: no lock of ours is taken, SQLite's own are enough."""

    def __init__(self, path: Path) -> None:
        """Open the journal at the path, which must be there already.

        Raises JournalTooNew, JournalCorrupt, JournalError: as `Journal.open`; also where there is no journal yet.
        """
        self._file = JournalFile(path, read_only=False, tables=TABLES, is_second=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


_VERSIONS: Final = "versions"

Versions = Mapping[str, Mapping[GVK, int]]
"""By cluster and kind."""

DOCUMENTS: Final = "rollout_documents"
"""The key of the revisions of Rollouts in force."""
CONFIRMED: Final = "confirmed"
"""The key of the confirmed changes that are not made yet."""
GUARDS: Final = "guards"
"""The key of the guards by which the last revision was judged."""
CONFIRMATION: Final = "review_confirmation"
"""The key of the last confirmation of settings."""
_HANDED_ON: Final = (CONFIRMED, GUARDS, DOCUMENTS, CONFIRMATION)
_REVISION: Final = "revision_in_force"
_LEFT: Final = "left"
_TABLES: Final = (CLUSTER, CONSTRAINT, EVICTION, GUARD_HOLD, LOSS, ROLLOUT, ROLLOUT_EARLIER, SUSPENSION, TIMER)
_BY_IDENTITY: Final = "ORDER BY api_group, kind, namespace, name"
_SHAPES: Final[Mapping[str, type[Struct]]] = {
    BINDING.name: PreviousPlacement,
    CONSTRAINT.name: Constraint,
    EVICTION.name: EvictionRecord,
    ROLLOUT.name: Record,
    SUSPENSION.name: SuspensionRecord,
}


class RecordTables(JournalTables):
    """The records of each cluster, of losses and of the store, and those that one leader hands to the next."""

    def holds(self, cluster: str) -> tuple[HoldRecord, ...]:
        """The mark that was written last, and those that a crash left in doubt. None: a journal of an older schema."""
        rows = self._file.rows(HOLD, "WHERE cluster = ? ORDER BY epoch", (cluster,))
        return tuple(HoldRecord(token=row[1], epoch=row[2], is_confirmed=bool(row[3])) for row in rows)

    def intend_hold(self, cluster: str, epoch: int, token: str) -> None:
        """Note a mark that is about to be written; on the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(HOLD, [(cluster, token, epoch, 0)])

    def confirm_hold(self, cluster: str, epoch: int, token: str) -> None:
        """The mark is written: no earlier one is ours any more. On the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.execute("DELETE FROM hold WHERE cluster = ?", (cluster,))
            self._file.put(HOLD, [(cluster, token, epoch, 1)])

    def rollout_records(self) -> dict[str, dict[str, Record]]:
        """Return the records of rollouts, by rollout and cluster, sorted. A journal of an older schema has none."""
        return {name: dict(records) for name, records in self._mirror.rollouts.of(self._read_rollouts).items()}

    def record_rollouts(self, rollout: str, records: Mapping[str, Record | None]) -> None:
        """Replace the records of one rollout in these clusters (None: delete it); equal ones are not written.

        One commit, or a part of the enclosing one. It does not wait for the disk: each write to a cluster comes after a
        durable intent, whose commit includes earlier ones.
        """
        known = self.rollout_records().get(rollout, {})
        differing = {cluster: record for cluster, record in sorted(records.items()) if record != known.get(cluster)}
        if not differing:
            return
        with self._file.transaction():
            self._file.remove(ROLLOUT, [(rollout, cluster) for cluster, record in differing.items() if record is None])
            rows = ((cluster, record) for cluster, record in differing.items() if record is not None)
            self._file.put(ROLLOUT, [columns_of(ROLLOUT, one, rollout=rollout, cluster=name) for name, one in rows])
            for cluster, record in differing.items():
                before, after = (one.earlier if one is not None else () for one in (known.get(cluster), record))
                if before != after:
                    self._file.remove(ROLLOUT_EARLIER, [(rollout, cluster, each.revision) for each in before])
                    self._file.put(ROLLOUT_EARLIER, [(rollout, cluster, each.revision, each.left_at) for each in after])
        self._mirror.rolled(rollout, differing)
        reach("after a rollout was recorded")

    def rollout_documents(self) -> dict[str, str]:
        """Return the revision of the document by which each Rollout goes on, by its name."""
        return self._file.decoded(DOCUMENTS, dict[str, str]) or {}

    def record_rollout_documents(self, revisions: Mapping[str, str]) -> None:
        """Replace them; equal ones are not written. It does not wait for the disk."""
        self._file.put_json(DOCUMENTS, dict(sorted(revisions.items())))

    def _read_rollouts(self) -> dict[str, dict[str, Record]]:
        rollouts: dict[str, dict[str, Record]] = {}
        for row in self._file.rows(ROLLOUT, "ORDER BY rollout, cluster"):
            rollouts.setdefault(row[0], {})[row[1]] = value_of(ROLLOUT, row, Record)
        for name, cluster, revision, left_at in self._file.rows(ROLLOUT_EARLIER, "ORDER BY left_at DESC, revision"):
            record = rollouts.get(name, {}).get(cluster)
            if record is not None:
                earlier = (*record.earlier, EarlierRevision(revision=revision, left_at=left_at))
                rollouts[name][cluster] = replace(record, earlier=earlier)
        return rollouts

    def versions(self) -> dict[str, dict[GVK, int]]:
        """The newest versions that were seen, by cluster and kind; nothing where that cannot be read."""
        recorded = self._file.decoded(_VERSIONS, dict[str, list[tuple[str, str, int]]]) or {}
        return {
            cluster: {GVK.parse(api_version, kind): number for api_version, kind, number in kinds}
            for cluster, kinds in recorded.items()
        }

    def record_versions(self, versions: Versions) -> None:
        """Replace what is recorded; the same is not written again. It does not wait for the disk."""
        rows = {
            cluster: [(gvk.api_version, gvk.kind, number) for gvk, number in sorted(kinds.items())]
            for cluster, kinds in sorted(versions.items())
        }
        self._file.put_json(_VERSIONS, rows)

    # Losses

    def losses(self) -> Losses:
        """All that is recorded. A journal of an older schema has none."""
        return self._mirror.losses.of(self._read_losses)

    def _read_losses(self) -> Losses:
        rows = self._file.rows(LOSS, "ORDER BY cluster, api_group, kind, namespace, name")
        losses = tuple(value_of(LOSS, row, RecordedLoss) for row in rows)
        held_since: dict[str, str] = dict(self._file.rows(GUARD_HOLD, "ORDER BY cluster"))
        confirmed = self._file.decoded(CONFIRMED, Confirmed) or NOT_CONFIRMED
        guards = self._file.decoded(GUARDS, GuardsInForce)
        return Losses(recorded=losses, held_since=held_since, confirmed=confirmed, guards=guards)

    def record_losses(self, losses: Iterable[RecordedLoss]) -> None:
        """Record losses before they are made; a later loss of the same copy replaces the earlier one."""
        rows = [columns_of(LOSS, loss) for loss in losses]
        if rows:
            self._mirror.losses.value = None
            self._file.put(LOSS, rows)

    def forget_losses(self) -> None:
        """Forget all losses: a person has confirmed them."""
        if self.losses().recorded:
            self._mirror.losses.value = None
            with self._file.transaction():
                self._file.execute("DELETE FROM loss")

    def keep_losses(self, losses: Losses) -> None:
        """Keep only these losses, of those recorded, and these times; equal ones are not written."""
        known = self.losses()
        gone = set(known.recorded) - set(losses.recorded)
        if not gone and replace(known, recorded=()) == replace(losses, recorded=()):
            return
        self._mirror.losses.value = None
        with self._file.transaction():
            self._file.remove(LOSS, sorted((loss.cluster, *loss.identity) for loss in gone))
            self._file.replace(GUARD_HOLD, known.held_since.items(), sorted(losses.held_since.items()))
            if known.confirmed != losses.confirmed:
                self._file.put_json(CONFIRMED, losses.confirmed)
            if known.guards != losses.guards:
                self._file.put_json(GUARDS, losses.guards)

    # The store

    def record_in_force(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Record the active revision of the store, and replace the last good blob of every path; only what differs."""
        with self._file.transaction():
            self._file.put_value(_REVISION, revision)
            self._file.replace(GOOD_BLOB, self._mirror.good_blobs.of(self.good_blobs).items(), good_blobs.items())
            self._mirror.good_blobs.value = dict(good_blobs)

    def record_confirmation(self, confirmation: ReviewConfirmation) -> None:
        """Record the confirmation of settings of a revision that comes into force; an equal one is not written."""
        self._file.put_json(CONFIRMATION, confirmation)

    def confirmation(self) -> ReviewConfirmation:
        """Return the last confirmation of settings; an empty one where there was none."""
        return self._file.decoded(CONFIRMATION, ReviewConfirmation) or ReviewConfirmation()

    @property
    def revision_in_force(self) -> str:
        """The revision that came into force last; empty before the first one."""
        return self._file.value(_REVISION)

    def good_blobs(self) -> dict[str, str]:
        """Path to the id of the last blob that was parsed without an error."""
        return dict(self._file.rows(GOOD_BLOB, "ORDER BY path"))

    # The handover

    def record_led_by(self, leader: str) -> None:
        """Record the leader while this process stands by; empty: none. An equal one is not written again."""
        self._file.put_value(LED_BY, leader)

    @property
    def left(self) -> int:
        """Return how often this journal wrote a changed handover for the next leader."""
        number = self._file.value(_LEFT)
        return int(number) if number.isdigit() else 0

    def count_left(self) -> int:
        """Count once more, before something else is left: a copy of the journal from before has counted less."""
        with self._file.transaction():
            number = self.left + 1
            self._file.put(META, [(_LEFT, str(number))])
        return number

    def handover(self) -> dict[str, list[Row]]:
        """Return the present handover for the next leader."""
        with self._file.transaction():
            rows = {table.name: sorted(self._file.rows(table), key=str) for table in _TABLES}
            rows |= {key: self._file.rows(META, "WHERE key = ?", (key,)) for key in _HANDED_ON}
            # Placements are in the marks of placed objects, but for the cluster group in use.
            return rows | {BINDING.name: self._file.rows(BINDING, "WHERE affinity_name <> '' " + _BY_IDENTITY)}

    def take_handover(self, handover: Mapping[str, Any]) -> None:
        """Replace the handover state by a leader's. Malformed rows are left out."""
        with self._file.transaction(durable=True):
            for table in (*_TABLES, BINDING):
                self._file.execute(f"DELETE FROM {table.name}")  # noqa: S608 - constants
                self._file.put(table, _rows(table, handover.get(table.name)))
            for key in _HANDED_ON:
                self._file.remove(META, [(key,)])
                self._file.put(META, [row for row in _rows(META, handover.get(key)) if row[0] == key])
        self._mirror.forget()


def _rows(table: SqlTable, recorded: Any) -> list[Row]:
    rows = [tuple(row) for row in recorded if isinstance(row, list)] if isinstance(recorded, list) else []
    return [row for row in rows if len(row) == len(table.columns) and _is_read(table, row)]


def _is_read(table: SqlTable, row: Row) -> bool:
    if not all(isinstance(value, (str, int)) for value in row):
        return False
    shape = _SHAPES.get(table.name)
    return shape is None or try_call(value_of, table, row, shape).fault is None
