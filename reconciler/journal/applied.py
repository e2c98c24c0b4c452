"""Applied objects: one row per object and cluster, and each distinct manifest once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject
from reconciler.api.ledger import AppliedRow
from reconciler.api.refs import Identity
from reconciler.errors import JournalCorrupt
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

_UNUSED = "digest NOT IN (SELECT recorded FROM applied WHERE recorded IS NOT NULL)"


def record(file: JournalFile, rows: Iterable[AppliedRow], key: bytes) -> list[AppliedRow]:
    """Write rows and the manifests that they share; the rows as they can be read again.

    Secret values become hashes here at the latest.
    """
    packed: dict[str, bytes] = {}
    forms: dict[int, tuple[str, JsonObject]] = {}
    bodies: list[JsonObject] = []

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
    file.execute_many("INSERT OR IGNORE INTO manifest (digest, body) VALUES (?, ?)", packed.items())
    file.put(APPLIED, columns)
    _record_numbers(file, ESTABLISHED, ((row, row.established) for row in recorded))
    _record_numbers(file, BASE, ((row, row.base) for row in recorded))
    return recorded


def _record_numbers(file: JournalFile, table: SqlTable, numbers: Iterable[tuple[AppliedRow, int | None]]) -> None:
    """Keep a number of each copy; None: delete it."""
    known = [((row.cluster, *row.identity), number) for row, number in numbers]
    file.remove(table, (copy for copy, number in known if number is None))
    file.put(table, [(*copy, number) for copy, number in known if number is not None])


def remove(file: JournalFile, cluster: str, identities: Iterable[Identity]) -> None:
    """Forget rows; their manifests go when the journal is opened next."""
    gone = [(cluster, *identity) for identity in identities]
    for table in (APPLIED, ESTABLISHED, BASE):
        file.remove(table, gone)


def read(file: JournalFile, cluster: str | None) -> dict[str, dict[Identity, AppliedRow]]:
    """Rows by cluster (None: every cluster) and identity; a manifest that several rows share is decoded once."""
    # The one writer reads what it wrote last; of a reader, everything is of one moment.
    with file.transaction() if file.read_only else nullcontext():
        return _read(file, *(("", ()) if cluster is None else ("WHERE cluster = ?", (cluster,))))


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


def has_unused_manifests(file: JournalFile) -> bool:
    """Return whether a manifest is left that no row refers to."""
    return bool(file.execute(f"SELECT 1 FROM manifest WHERE {_UNUSED} LIMIT 1"))  # noqa: S608 - constants


def remove_unused_manifests(file: JournalFile) -> None:
    """Drop manifests that no row refers to any more."""
    file.execute(f"DELETE FROM manifest WHERE {_UNUSED}")  # noqa: S608 - constants
