"""What the processes of a fleet tell each other, as documents: a shard of its clusters, the leader of all of them.

A shard tells what it sees and what it is about to delete. The leader tells by what it has decided: observations of all
clusters, the placements that are in force, the constraints. A shard believes no other one: whatever rests on several
clusters rests on the leader's one document, and so comes out alike everywhere.
Source: design#shards; ADR 22. Documents are packed, since an object has a limit of 1 MiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.ledger import Loss
from reconciler.model.observation import Observations
from reconciler.model.refs import GVK, Identity
from reconciler.model.rollouts.told import NO_ROLLOUTS, RolloutAccount
from reconciler.model.tree import JsonObject
from reconciler.stages.observations import (
    dump_observations,
    pack,
    pack_placements,
    parse_observations,
    read_placements,
    unpack,
)
from reconciler.stages.shards.rollouts import read_rollouts, rollouts_tree

PACKED_BYTES_MAX: Final = 950_000
_BYTES_MAX: Final = 64 * 2**20
"""So much it may be unpacked: who can write the object must not fill the memory."""
_KEY: Final = "account"
_Read = TypeVar("_Read")


class Due(Struct, frozen=True, kw_only=True):
    """A deletion, release or move that guards count. `confirm`: why a person must let it pass by itself, else empty."""

    action: str
    cluster: str
    gvk: GVK
    identity: Identity
    guarded: bool = True
    confirm: str = ""


class Guarded(Struct, frozen=True, kw_only=True):
    """What the guards of others have to count of a shard, by one revision. `managed`: our objects by cluster."""

    revision: str = ""
    due: tuple[Due, ...] = ()
    made: tuple[Loss, ...] = ()
    held_since: Mapping[str, str] = field(default_factory=dict)
    managed: Mapping[str, int] = field(default_factory=dict)


class Account(Struct, frozen=True, kw_only=True):
    """What one process tells. `shard` is empty of the leader.

    `revision`: by which it acts. `asks`: objects of which it wants to know how their copies elsewhere serve. `guarded`:
    by shard. `orders`: rows of the suspensions that persons gave to the leader.
    """

    shard: str = ""
    revision: str = ""
    observations: Observations = Observations()
    asks: tuple[Identity, ...] = ()
    guarded: Mapping[str, Guarded] = field(default_factory=dict)
    orders: tuple[tuple[str, ...], ...] = ()
    rollouts: RolloutAccount = NO_ROLLOUTS


class AccountTooLarge(ValueError):
    """It does not fit into an object."""


def account_body(name: str, namespace: str, account: Account) -> JsonObject:
    """The object that says it.

    Raises:
        AccountTooLarge: it does not fit.
    """
    packed = pack(_tree(account))
    if len(packed) > PACKED_BYTES_MAX:
        who = f"shard {account.shard}" if account.shard else "the leader"
        raise AccountTooLarge(f"what {who} tells is {len(packed)} bytes, and {PACKED_BYTES_MAX} fit; use more shards")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"shard": account.shard, "revision": account.revision, _KEY: packed},
    }


def read_account(body: JsonObject) -> Account | None:
    """What an object tells; None: it has no such form. What of it is not understood counts as not told."""
    data = body.get("data")
    packed = data.get(_KEY) if isinstance(data, dict) else None
    tree = unpack(packed, _BYTES_MAX) if isinstance(packed, str) else None
    if not isinstance(tree, dict):
        return None
    observations, _ = parse_observations(orjson.dumps(tree.get("observations")), "account")
    if observations is None:
        return None
    return Account(
        shard=_text(tree.get("shard")),
        revision=_text(tree.get("revision")),
        observations=replace(observations, previous=read_placements(str(tree.get("placements") or ""))),
        asks=tuple(_each(tree.get("asks"), _identity)),
        guarded={_text(name): _guarded(found) for name, found in _mapping(tree.get("guarded")).items()},
        orders=tuple(_each(tree.get("orders"), _row)),
        rollouts=read_rollouts(tree.get("rollouts")),
    )


def _tree(account: Account) -> JsonObject:
    return {
        "version": 1,
        "shard": account.shard,
        "revision": account.revision,
        "observations": dump_observations(replace(account.observations, previous={})),
        "placements": pack_placements(account.observations.previous),
        "asks": [tuple(identity) for identity in account.asks],
        "guarded": {name: _guarded_tree(found) for name, found in account.guarded.items()},
        "orders": account.orders,
        "rollouts": rollouts_tree(account.rollouts),
    }


def _guarded_tree(found: Guarded) -> JsonObject:
    return {
        "revision": found.revision,
        "due": [
            (each.action, each.cluster, tuple(each.gvk), tuple(each.identity), each.guarded, each.confirm)
            for each in found.due
        ],
        "made": [(each.cluster, tuple(each.identity), each.time) for each in found.made],
        "heldSince": found.held_since,
        "managed": found.managed,
    }


def _guarded(tree: Any) -> Guarded:
    found = _mapping(tree)
    return Guarded(
        revision=_text(found.get("revision")),
        due=tuple(_each(found.get("due"), _due)),
        made=tuple(_each(found.get("made"), _loss)),
        held_since={name: _text(since) for name, since in _mapping(found.get("heldSince")).items()},
        managed=_counts(found.get("managed")),
    )


def _due(row: Any) -> Due:
    action, cluster, gvk, identity, guarded, confirm = row
    return Due(
        action=_text(action),
        cluster=_text(cluster),
        gvk=GVK(*map(_text, gvk)),
        identity=_identity(identity),
        guarded=guarded is True,
        confirm=_text(confirm),
    )


def _loss(row: Any) -> Loss:
    cluster, identity, time = row
    return Loss(cluster=_text(cluster), identity=_identity(identity), time=_text(time))


def _identity(row: Any) -> Identity:
    return Identity(*map(_text, row))


def _row(row: Any) -> tuple[str, ...]:
    return tuple(map(_text, row))


def _each(rows: Any, read: Callable[[Any], _Read]) -> Iterator[_Read]:
    for row in rows if isinstance(rows, list) else []:
        # Another version may have written it, or a person.
        with suppress(TypeError, ValueError):
            yield read(row)


def _mapping(tree: Any) -> dict[str, Any]:
    return tree if isinstance(tree, dict) else {}


def _counts(tree: Any) -> dict[str, int]:
    return {name: count for name, count in _mapping(tree).items() if type(count) is int and count >= 0}


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value or ""
