"""Applied objects: one row per object and cluster, and each distinct manifest once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject
from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.refs import Identity
from reconciler.errors import JournalCorrupt
from reconciler.journal.mirror import JournalTables
from reconciler.journal.rows import (
    APPLIED,
    BASE,
    ESTABLISHED,
    applied_columns,
    applied_row,
    pack_manifest,
    unpack_manifest,
)
from reconciler.journal.sqlite_file import REBUILD, JournalFile, Row, SqlTable
from reconciler.observations import RecordedMove
from reconciler.ownership import recorded_form

UNUSED = "digest NOT IN (SELECT recorded FROM applied WHERE recorded IS NOT NULL)"


class AppliedTable(JournalTables):
    """The objects that were applied."""

    @property
    def hash_key(self) -> bytes:
        """Return the key of hashes for Secret values; it never leaves the file but to `recorded_form`."""
        return bytes.fromhex(self._meta("hash_key"))

    def _meta(self, key: str) -> str:
        known = self._mirror.meta.get(key) or self._file.value(key)
        if known and not self._file.read_only:
            self._mirror.meta[key] = known
        return known

    def record_applied(self, rows: Iterable[AppliedRow]) -> None:
        """Record acknowledged objects, and the manifests that they share; one commit.

        Secret values become hashes here at the latest.
        """
        packed: dict[str, bytes] = {}
        forms: dict[int, tuple[str, JsonObject]] = {}
        bodies: list[JsonObject] = []
        file, key = self._file, self.hash_key

        def form_of(body: JsonObject) -> tuple[str, JsonObject]:
            if id(body) not in forms:
                bodies.append(body)  # an id is only unique while its object lives
                form = recorded_form(body, key)
                digest, data = pack_manifest(form)
                packed[digest] = data
                forms[id(body)] = digest, form
            return forms[id(body)]

        columns: list[Row] = []
        recorded: list[AppliedRow] = []
        for row in rows:
            digest, form = form_of(row.recorded) if row.recorded is not None else (None, None)
            columns.append(applied_columns(row, digest))
            recorded.append(row if form is row.recorded else replace(row, recorded=form))
        with self.transaction():
            file.execute_many("INSERT OR IGNORE INTO manifest (digest, body) VALUES (?, ?)", packed.items())
            file.put(APPLIED, columns)
            _record_numbers(file, ESTABLISHED, ((row, row.established) for row in recorded))
            _record_numbers(file, BASE, ((row, row.base) for row in recorded))
            self._mirror.applied((row.cluster, row.identity, row) for row in recorded)

    def remove_applied(self, cluster: str, identities: Iterable[Identity]) -> None:
        """Forget objects of a cluster: deleted or released; their manifests go when the journal is opened next."""
        gone = tuple(identities)
        with self.transaction():
            for table in (APPLIED, ESTABLISHED, BASE):
                self._file.remove(table, [(cluster, *identity) for identity in gone])
            self._mirror.applied((cluster, identity, None) for identity in gone)

    def applied(self, cluster: str) -> Mapping[Identity, AppliedRow]:
        """Return the applied rows of one cluster, by identity."""
        return self._read_applied("WHERE cluster = ?", (cluster,)).get(cluster, {})

    def ledger(self) -> Ledger:
        """Return the applied rows, by cluster and identity, sorted. Equal manifests are one shared tree.

        A writer reads it once; clusters without writes since are the same mapping again.
        """
        return self._mirror.ledger.of(lambda: self._read_applied("", ()))

    def _read_applied(self, where: str, values: Row) -> dict[str, dict[Identity, AppliedRow]]:
        # The one writer reads what it wrote last; of a reader, everything is of one moment.
        with self._file.transaction() if self._file.read_only else nullcontext():
            return _read(self._file, where, values)


def _record_numbers(file: JournalFile, table: SqlTable, numbers: Iterable[tuple[AppliedRow, int | None]]) -> None:
    """Keep a number of each copy; None: delete it."""
    known = [((row.cluster, *row.identity), number) for row, number in numbers]
    file.remove(table, (copy for copy, number in known if number is None))
    file.put(table, [(*copy, number) for copy, number in known if number is not None])


def _read(file: JournalFile, where: str, values: Row) -> dict[str, dict[Identity, AppliedRow]]:
    bodies = manifests(file, f"WHERE digest IN (SELECT recorded FROM applied {where})", values)  # noqa: S608 - constants
    established, base = ({row[:5]: row[5] for row in file.rows(table, where, values)} for table in (ESTABLISHED, BASE))
    # Copies in many clusters differ in few columns: equal values are kept once.
    shared: dict[Hashable, Any] = {}
    ledger: dict[str, dict[Identity, AppliedRow]] = {}
    clusters = file.execute(f"SELECT DISTINCT cluster FROM applied {where} ORDER BY cluster", values)  # noqa: S608 - constants
    for (cluster,) in clusters:
        # One cluster at a time: the raw rows of a large fleet take more memory than the result.
        rows = ledger[cluster] = {}
        for raw in file.rows(APPLIED, "WHERE cluster = ? ORDER BY api_group, kind, namespace, name", (cluster,)):
            row = tuple(shared.setdefault(value, value) for value in raw)
            digest: str | None = row[8]
            if digest is not None and digest not in bodies:
                raise JournalCorrupt(f"{file.path}: the recorded manifest {digest} is missing; {REBUILD}")
            memory = RecordedMove(established=established.get(row[:5]), base=base.get(row[:5]))
            value = applied_row(row, bodies[digest] if digest else None, memory, shared)
            rows[value.identity] = value
    return ledger


def manifests(file: JournalFile, where: str = "", values: Row = ()) -> dict[str, JsonObject]:
    """Recorded manifests by digest. Raises JournalCorrupt: one is not what its digest says."""
    bodies: dict[str, JsonObject] = {}
    for digest, packed in file.execute(f"SELECT digest, body FROM manifest {where} ORDER BY digest", values):  # noqa: S608 - constants
        body = unpack_manifest(digest, packed)
        if body is None:
            raise JournalCorrupt(f"{file.path}: the recorded manifest {digest} was changed; {REBUILD}")
        bodies[digest] = body
    return bodies


def manifest_pieces(file: JournalFile, size: int) -> Iterator[dict[str, Json]]:
    """Yield recorded manifests by digest, so many at a time; one empty piece if there are none."""
    last = ""
    next_ones = "WHERE digest IN (SELECT digest FROM manifest WHERE digest > ? ORDER BY digest LIMIT ?)"
    while True:
        piece = manifests(file, next_ones, (last, size))
        if piece or not last:
            yield dict(piece)
        if len(piece) < size:
            return
        last = max(piece)


def broken_manifests(file: JournalFile) -> Iterator[str]:
    """Yield one sentence for each missing manifest, or one with a wrong digest."""
    for digest, packed in file.execute("SELECT digest, body FROM manifest ORDER BY digest"):
        if unpack_manifest(digest, packed) is None:
            yield f"the recorded manifest {digest} was changed"
    for (digest,) in file.execute(
        "SELECT recorded FROM applied WHERE recorded IS NOT NULL EXCEPT SELECT digest FROM manifest"
    ):
        yield f"the recorded manifest {digest} is missing"
