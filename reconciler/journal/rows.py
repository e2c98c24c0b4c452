"""The tables of the journal, and how values become rows and rows become values."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Hashable, Iterable, MutableMapping
from typing import Any

import orjson

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster, Tick
from reconciler.api.content import Json, JsonObject, canonical_bytes
from reconciler.api.ledger import AppliedRow, Event, EvictionRecord, Intent, SuspensionRecord
from reconciler.api.plan import Action
from reconciler.api.policies import Flavor
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.journal.sqlite_file import META, Row, SqlTable
from reconciler.observations import MoveMemory

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
    "rollout",
    2,
    ("rollout", "cluster", "revision", "begun_at", "completed_at", "steady_since", "turn", "turn_at"),
)
ROLLOUT_EARLIER = SqlTable("rollout_earlier", 3, ("rollout", "cluster", "revision", "left_at"))
STATE = SqlTable("state", 1, ("name", "document"))

TABLES = (
    *(META, CLUSTER, APPLIED, ESTABLISHED, BASE, BINDING, CONSTRAINT, EVICTION, TIMER, GOOD_BLOB, SUSPENSION, INTENT),
    *(EVENT, ROUND, STATE, LOSS, GUARD_HOLD, HOLD, OUTBOX, ROLLOUT, ROLLOUT_EARLIER),
)
"""Every table with checksums."""

_PACK_LEVEL = 1  # a manifest shrinks to two fifths at level 1; higher levels cost more than they save


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
    row: Row, recorded: JsonObject | None, memory: MoveMemory, shared: MutableMapping[Hashable, Any]
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


def binding_columns(placement: PreviousPlacement, revision: str) -> Row:
    """Targets are kept as JSON: they are only ever read together."""
    return (*placement.identity, placement.affinity_name, _targets_text(placement.targets), revision)


def binding_value(row: Row) -> PreviousPlacement:
    """The inverse of `binding_columns`."""
    return PreviousPlacement(identity=Identity(*row[:4]), affinity_name=row[4], targets=_targets(row[5]))


def _targets_text(targets: Iterable[TargetCluster]) -> str:
    return json_text([[target.cluster, target.replicas] for target in targets])


def _targets(text: str) -> tuple[TargetCluster, ...]:
    return tuple(TargetCluster(cluster=name, replicas=replicas) for name, replicas in orjson.loads(text))


def constraint_columns(position: int, constraint: Constraint) -> Row:
    """Constraints keep their order."""
    return (
        *(position, *constraint.identity, constraint.cluster, constraint.replicas_max, int(constraint.excludes)),
        *(constraint.until, constraint.reason, str(constraint.tick), constraint.since, constraint.basis),
        _targets_text(constraint.before),
    )


def constraint_value(row: Row) -> Constraint:
    """The inverse of `constraint_columns`."""
    return Constraint(
        identity=Identity(*row[1:5]),
        cluster=row[5],
        replicas_max=row[6],
        excludes=bool(row[7]),
        until=row[8],
        reason=row[9],
        tick=Tick(row[10]),
        since=row[11],
        basis=row[12],
        before=_targets(row[13]),
    )


def eviction_value(row: Row) -> EvictionRecord:
    """An eviction from its row."""
    return EvictionRecord(
        identity=Identity(*row[:4]), cluster=row[4], since=row[5], until=row[6], who=row[7], reason=row[8]
    )


def intent_columns(intent_id: int, intent: Intent) -> Row:
    """One row for each intent. It is open: it has no outcome yet."""
    return (
        *(intent_id, intent.cluster, *intent.gvk[:2], intent.identity.kind, intent.identity.namespace),
        *(intent.identity.name, str(intent.action), intent.manifest_digest, intent.uid, intent.revision),
        *(None, ""),
    )


def intent_value(row: Row) -> Intent:
    """The inverse of `intent_columns`, without id and outcome."""
    return Intent(
        cluster=row[1],
        gvk=GVK(row[2], row[3], row[4]),
        identity=Identity(row[2], row[4], row[5], row[6]),
        action=Action(row[7]),
        manifest_digest=row[8],
        uid=row[9],
        revision=row[10],
    )


def event_value(row: Row) -> Event:
    """An event from its row."""
    return Event(round=row[1], time=row[2], kind=row[3], subject=row[4], data=orjson.loads(row[5]))


def suspension_value(row: Row) -> SuspensionRecord:
    """A suspension from its row."""
    return SuspensionRecord(scope=row[0], reason=row[1], who=row[2], until=row[3])


def rollout_columns(rollout: str, cluster: str, record: Record) -> Row:
    """One row for each rollout and cluster."""
    return (
        *(rollout, cluster, record.revision, record.begun_at, record.completed_at, record.steady_since),
        *(record.turn, record.turn_at),
    )


def rollout_value(row: Row) -> Record:
    """The inverse of `rollout_columns`, without rollout and cluster."""
    return Record(
        revision=row[2], begun_at=row[3], completed_at=row[4], steady_since=row[5], turn=row[6], turn_at=row[7]
    )
