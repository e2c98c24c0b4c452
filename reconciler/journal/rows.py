"""The tables of the journal, and how values become rows and rows become values."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Hashable, MutableMapping
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec import Struct

from reconciler.api.binding import Constraint, PreviousPlacement
from reconciler.api.content import Json, JsonObject, canonical_bytes
from reconciler.api.ledger import AppliedRow, Event, EvictionRecord, Intent, RecordedLoss, SuspensionRecord
from reconciler.api.policies import Flavor
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.decoding import prepared
from reconciler.journal.sqlite_file import META, Row, SqlTable
from reconciler.observations import RecordedMove

_IDENTITY = ("api_group", "kind", "namespace", "name")

_FAILED = 2
"""In column `finished`: it was deleted after it failed."""

CLUSTER = SqlTable("cluster", 1, ("name", "uid"))
APPLIED = SqlTable(
    "applied",
    5,
    (
        *("cluster", *_IDENTITY, "version", "uid", "manifest_digest", "recorded", "policy", "keep", "flavor"),
        *("replicas", "dependency", "finished", "revision", "source_path", "source_line"),
    ),
)
ESTABLISHED = SqlTable("established", 5, ("cluster", *_IDENTITY, "replicas"))
BASE = SqlTable("base", 5, ("cluster", *_IDENTITY, "replicas"))
BINDING = SqlTable("binding", 4, (*_IDENTITY, "affinity_name", "targets", "revision"))
CONSTRAINT = SqlTable(
    "tick_constraint",
    6,
    (
        *("position", *_IDENTITY, "cluster", "replicas_max", "excludes", "until", "reason"),
        *("tick", "since", "basis", "before"),
    ),
)
EVICTION = SqlTable("eviction", 5, (*_IDENTITY, "cluster", "since", "until", "who", "reason"))
TIMER = SqlTable("timer", 1, ("name", "time"))
GOOD_BLOB = SqlTable("good_blob", 1, ("path", "blob"))
SUSPENSION = SqlTable("suspension", 1, ("scope", "reason", "who", "until"))
INTENT = SqlTable(
    "intent",
    1,
    (
        *("id", "cluster", "api_group", "version", "kind", "namespace", "name", "action", "manifest_digest", "uid"),
        *("revision", "outcome", "detail"),
    ),
)
EVENT = SqlTable("event", 1, ("id", "round", "time", "kind", "subject", "data"))
OUTBOX = SqlTable("outbox", 1, ("receiver", "delivered"))
ROUND = SqlTable("round", 1, ("number", "revision", "time", "summary"))
LOSS = SqlTable("loss", 5, ("cluster", *_IDENTITY, "time"))
GUARD_HOLD = SqlTable("guard_hold", 1, ("cluster", "since"))
HOLD = SqlTable("hold", 2, ("cluster", "token", "epoch", "confirmed"))
ROLLOUT = SqlTable(
    "rollout", 2, ("rollout", "cluster", "revision", "begun_at", "completed_at", "steady_since", "turn", "turn_at")
)
ROLLOUT_EARLIER = SqlTable("rollout_earlier", 3, ("rollout", "cluster", "revision", "left_at"))
STATE = SqlTable("state", 1, ("name", "document"))

TABLES = (
    *(META, CLUSTER, APPLIED, ESTABLISHED, BASE, BINDING, CONSTRAINT, EVICTION, TIMER, GOOD_BLOB, SUSPENSION, INTENT),
    *(EVENT, ROUND, STATE, LOSS, GUARD_HOLD, HOLD, OUTBOX, ROLLOUT, ROLLOUT_EARLIER),
)
"""Every table with checksums."""

_PACK_LEVEL = 1  # a manifest shrinks to two fifths at level 1; higher levels cost more than they save

_JSON_COLUMNS = frozenset({"targets", "before", "data", "summary", "document"})
_Value = TypeVar("_Value")


def object_of(table: SqlTable, row: Row) -> dict[str, Any]:
    """Return the values of a row by the names of the columns."""
    named = zip(table.columns, row, strict=True)
    return {name: orjson.loads(value) if name in _JSON_COLUMNS else value for name, value in named}


def value_of(table: SqlTable, row: Row, shape: type[_Value]) -> _Value:
    """Return a row as a value whose fields have the names of its columns; other fields have their defaults.

    Raises msgspec.ValidationError: the row has another form.
    """
    fields = object_of(table, row)
    if "api_group" in fields:
        fields["identity"] = identity = [fields[column] for column in _IDENTITY]
        fields["gvk"] = (identity[0], fields.get("version", ""), identity[1])
    return msgspec.convert(fields, shape, strict=False)


# A reader decodes in a thread of its own.
RECORDS = (Constraint, Event, EvictionRecord, Intent, PreviousPlacement, Record, RecordedLoss, SuspensionRecord)
for _shape in RECORDS:
    prepared(_shape)


def columns_of(table: SqlTable, value: Struct, **more: str | int | None) -> Row:
    """Return the row of a value: the inverse of `value_of`. `more`: columns that are no fields of it."""
    fields: dict[str, Any] = {**more, **dict(zip(_IDENTITY, getattr(value, "identity", ()), strict=False))}
    row = []
    for name in table.columns:
        column = fields[name] if name in fields else getattr(value, name)
        if name in _JSON_COLUMNS:
            column = json_text(msgspec.to_builtins(column))
        row.append(int(column) if isinstance(column, bool) else str(column) if isinstance(column, str) else column)
    return tuple(row)


def json_text(tree: Json) -> str:
    """A JSON column."""
    return canonical_bytes(tree).decode()


def pack_manifest(body: JsonObject) -> tuple[str, bytes]:
    """Return digest and compressed bytes of a recorded manifest."""
    data = canonical_bytes(body)
    return _digest(data), zlib.compress(data, _PACK_LEVEL)


def unpack_manifest(digest: str, packed: bytes) -> JsonObject | None:
    """The manifest; None when the bytes are not those that the digest names."""
    try:
        data = zlib.decompress(packed)
    except zlib.error:
        return None
    return orjson.loads(data) if _digest(data) == digest else None


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def applied_columns(row: AppliedRow, recorded: str | None) -> Row:
    """`recorded` is the digest under which the manifest is kept."""
    return (
        *(row.cluster, *row.identity, row.gvk.version, row.uid, row.manifest_digest, recorded, row.policy),
        *(int(row.keep), str(row.flavor), row.replicas, int(row.dependency), row.finished + row.failed),
        *(row.revision, row.source.path, row.source.line),
    )


def applied_row(
    row: Row, recorded: JsonObject | None, memory: RecordedMove, shared: MutableMapping[Hashable, Any]
) -> AppliedRow:
    """Return the row: the inverse of `applied_columns`, with the manifest and the columns that are kept apart.

    `shared`: values of other rows, used instead of equal ones; it grows.
    """
    share = shared.setdefault
    identity, gvk, source = Identity(*row[1:5]), GVK(row[1], row[5], row[2]), Source(row[16], row[17])
    return AppliedRow(
        cluster=row[0],
        identity=share(identity, identity),
        gvk=share(gvk, gvk),
        uid=row[6],
        manifest_digest=row[7],
        recorded=recorded,
        policy=row[9],
        keep=bool(row[10]),
        flavor=Flavor(row[11]),
        replicas=row[12],
        dependency=bool(row[13]),
        finished=bool(row[14]),
        failed=row[14] == _FAILED,
        revision=row[15],
        source=share(source, source),
        established=memory.established,
        base=memory.base,
    )
