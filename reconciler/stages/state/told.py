"""States of copies as one process tells them to the others, and as these take them in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from msgspec import Struct, field

from reconciler.model.refs import GVK, Identity
from reconciler.stages.shards import ShardPicture, ToldCluster, ToldCopy, words
from reconciler.stages.state.holds import HeldBy
from reconciler.stages.state.tables import ClusterState
from reconciler.stages.state.values import (
    HEALTHY,
    MISSING,
    NOMINAL,
    SYNCED,
    Degraded,
    Failed,
    Fought,
    Frozen,
    HealthState,
    HealthWord,
    Held,
    Lag,
    Left,
    NotKnown,
    ObjectState,
    Pending,
    Progressing,
    Refused,
    SyncState,
    UnknownHealth,
)

_Word = TypeVar("_Word", bound=StrEnum)

_HOLDERS: Final = {str(by): by for by in HeldBy}
_ABSENT: Final = "absent"
"""As a state: it is placed there, and not to be there now, since it runs elsewhere still."""
_STRANGE: Final = "it is told in words that this version does not know"


class ShardTold(Struct, frozen=True, kw_only=True):
    """What is known of another shard. `picture`: what it told last, None: nothing. `clusters`: the same as states.

    `why`: why it is not to be relied on, empty: it is. `kinds`: of the objects that it tells of.
    """

    picture: ShardPicture | None = None
    clusters: Mapping[str, ClusterState] = field(default_factory=dict)
    kinds: Mapping[Identity, GVK] = field(default_factory=dict)
    why: str = ""


def told_copy(
    cluster: str, identity: Identity, gvk: GVK | None, state: ObjectState, masked: Callable[[str], str]
) -> ToldCopy:
    """A state as it is told. `masked` takes out of a reason what nobody may see."""
    sync = state.sync
    return ToldCopy(
        cluster=cluster,
        group=identity.group,
        version=gvk.version if gvk is not None else "",
        kind=identity.kind,
        namespace=identity.namespace,
        name=identity.name,
        state=str(sync.lag),
        health=str(state.health.word),
        why=words(masked(", ".join(sync.managers) if isinstance(sync, Fought) else sync.why)),
        health_why=words(masked(state.health.why)),
        detail=_detail(sync),
        is_wanted=state.is_wanted,
    )


def told_absence(cluster: str, identity: Identity) -> ToldCopy:
    """That a copy is placed in a cluster, and not to be there now."""
    return ToldCopy(
        cluster=cluster,
        group=identity.group,
        version="",
        kind=identity.kind,
        namespace=identity.namespace,
        name=identity.name,
        state=_ABSENT,
        health="",
    )


def shard_told(picture: ShardPicture, why: str = "") -> ShardTold:
    """A picture taken in."""
    kept: dict[str, dict[Identity, ObjectState]] = {name: {} for name in picture.clusters}
    absent: dict[str, set[Identity]] = {name: set() for name in picture.clusters}
    kinds: dict[Identity, GVK] = {}
    for row in picture.copies:
        if row.cluster in kept:
            identity = Identity(row.group, row.kind, row.namespace, row.name)
            if row.state == _ABSENT:
                absent[row.cluster].add(identity)
                continue
            kept[row.cluster][identity] = _state(row)
            if row.version:
                kinds[identity] = GVK(row.group, row.version, row.kind)
    clusters = {
        name: _cluster(name, found, kept[name], absent[name], picture) for name, found in picture.clusters.items()
    }
    return ShardTold(picture=picture, clusters=clusters, kinds=kinds, why=why)


def _cluster(
    name: str,
    found: ToldCluster,
    kept: Mapping[Identity, ObjectState],
    absent: Collection[Identity],
    picture: ShardPicture,
) -> ClusterState:
    otherwise = NOMINAL
    if found.why_away:
        otherwise = _unknown(found.why_away, found.last_contact)
        kept = dict.fromkeys(kept, otherwise)
    elif (count := len(kept) + len(absent)) < found.kept:
        told = f"of {found.kept} copies that deviate here, shard {picture.shard} has room to tell of {count}"
        otherwise = _unknown(f"{told}; ask its process", found.last_contact, is_wanted=True)
    return ClusterState(
        name=name,
        kept=kept,
        # Words that are not known here count as nothing that anybody may take for well.
        syncs=_counted(Lag, found.syncs, Lag.UNKNOWN),
        healths=_counted(HealthWord, found.healths, HealthWord.UNKNOWN),
        why_away=found.why_away or None,
        is_left=found.is_left,
        last_contact=found.last_contact,
        otherwise=otherwise,
        absent=frozenset(absent),
    )


def _unknown(why: str, last_contact: str, *, is_wanted: bool = False) -> ObjectState:
    return ObjectState(NotKnown(why, last_contact), UnknownHealth(why), is_wanted)


def _counted(known: type[_Word], told: Mapping[str, int], other: _Word) -> dict[_Word, int]:
    words_known = {str(word): word for word in known}
    found = dict.fromkeys(known, 0)
    for name, count in told.items():
        found[words_known.get(name, other)] += count
    return found


def _detail(sync: SyncState) -> str:
    if isinstance(sync, Held):
        return str(sync.by)
    if isinstance(sync, Refused):
        return sync.code
    if isinstance(sync, Fought):
        return sync.until
    return sync.last_contact if isinstance(sync, NotKnown | Left) else ""


def _state(row: ToldCopy) -> ObjectState:
    return ObjectState(_sync(row), _health(row), row.is_wanted)


def _sync(row: ToldCopy) -> SyncState:
    made: Mapping[str, Callable[[], SyncState]] = {
        Lag.SYNCED: lambda: SYNCED,
        Lag.PENDING: lambda: Pending(row.why),
        Lag.HELD: lambda: Held(_HOLDERS.get(row.detail, HeldBy.OTHERS), row.why),
        Lag.FAILED: lambda: Failed(row.why),
        Lag.FOUGHT: lambda: Fought(tuple(filter(None, row.why.split(", "))), row.detail),
        Lag.REFUSED: lambda: Refused(row.detail, row.why),
        Lag.FROZEN: lambda: Frozen(row.why, None),
        Lag.UNKNOWN: lambda: NotKnown(row.why, row.detail),
        Lag.LEFT: lambda: Left(row.detail),
    }
    return made.get(row.state, lambda: NotKnown(_STRANGE, ""))()


def _health(row: ToldCopy) -> HealthState:
    made: Mapping[str, Callable[[], HealthState]] = {
        HealthWord.HEALTHY: lambda: HEALTHY,
        HealthWord.PROGRESSING: lambda: Progressing(row.health_why),
        HealthWord.DEGRADED: lambda: Degraded(row.health_why),
        HealthWord.MISSING: lambda: MISSING,
        HealthWord.UNKNOWN: lambda: UnknownHealth(row.health_why),
    }
    return made.get(row.health, lambda: UnknownHealth(_STRANGE))()
