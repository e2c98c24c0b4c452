"""The state of a whole fleet with shards: what this process knows of its clusters, and what others tell of theirs.

Nothing may look fine that is not known to be fine: where a shard does not tell, or tells of another revision than the
one in force here, its copies are not Synced. Source: ADR 22.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.cluster import Cluster
from reconciler.model.refs import GVK, Identity
from reconciler.stages.shards import shard_of
from reconciler.stages.state.inputs import Facts
from reconciler.stages.state.tables import Applier, ClusterState, FleetState
from reconciler.stages.state.told import ShardTold
from reconciler.stages.state.values import (
    HEALTHY,
    HealthWord,
    Lag,
    NotKnown,
    ObjectState,
    Pending,
    UnknownHealth,
)

_NOBODY: Final = "its label names no shard of the Fleet document, so nobody applies there"
_SHORT: Final = 12


class Others(Struct, frozen=True, kw_only=True):
    """What a process of a fleet with shards knows beside its own clusters. `shard`: of itself, empty: it has none.

    `process`: its name. `told`: by shard, of all others. `at`: when that became so (RFC 3339).
    """

    shard: str = ""
    process: str = ""
    told: Mapping[str, ShardTold] = field(default_factory=dict)
    at: str = ""


def whole_of(own: FleetState, others: Others) -> FleetState:
    """The state of all clusters that any process of the fleet applies to; `own` where the fleet has no shards."""
    facts = own.facts
    ha = facts.decision.fleet.settings.ha if facts is not None else None
    if facts is None or ha is None or not ha.shards:
        return own
    fleet = facts.decision.fleet
    here = Applier(shard=others.shard, process=others.process, is_here=True)
    found = {name: replace(state, applier=here) for name, state in own.clusters.items()}
    wanted = _Wanted(facts)
    for name in facts.elsewhere:
        cluster = fleet.clusters[name]
        if not cluster.pulls:
            found[name] = _of_other(cluster, shard_of(cluster, ha.shards), others, wanted)
    kinds: dict[Identity, GVK] = {}
    for shard, told in others.told.items():
        kinds |= told.kinds
        for name, state in told.clusters.items():
            if state.is_left and name not in fleet.clusters and name not in found:
                found[name] = replace(state, applier=_applier(shard, told))
    return replace(own, clusters=dict(sorted(found.items())), kinds=kinds)


class _Wanted:
    """How many objects are wanted in each cluster; counted once, where anybody asks."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._counts: Counter[str] | None = None

    @property
    def revision(self) -> str:
        return self._facts.decision.fleet.revision

    def count(self, cluster: str) -> int:
        if self._counts is None:
            bindings = self._facts.decision.bindings.values()
            self._counts = Counter(target.cluster for binding in bindings for target in binding.targets)
        return self._counts[cluster]


def _of_other(cluster: Cluster, shard: str | None, others: Others, wanted: _Wanted) -> ClusterState:
    name = cluster.name
    if shard is None:
        return _not_known(name, Applier(why=_NOBODY), wanted)
    told = others.told.get(shard, ShardTold(why=f"shard {shard} has told nothing yet"))
    applier = _applier(shard, told)
    if applier.why:
        return _not_known(name, applier, wanted, told.clusters.get(name))
    state = told.clusters.get(name)
    if state is None:
        return _not_known(name, replace(applier, why=f"shard {shard} has not told of it yet"), wanted)
    revision = told.picture.revision if told.picture is not None else ""
    if revision != wanted.revision and state.why_away is None:
        state = _of_another_revision(state, f"shard {shard} tells of revision {_short(revision)}", wanted.revision)
    return replace(state, applier=applier)


def _applier(shard: str, told: ShardTold) -> Applier:
    return Applier(shard=shard, process=told.picture.process if told.picture is not None else "", why=told.why)


def _not_known(name: str, applier: Applier, wanted: _Wanted, before: ClusterState | None = None) -> ClusterState:
    """A cluster of which nobody tells how it is now. `before`: as it was told last."""
    count, contact = wanted.count(name), before.last_contact if before is not None else ""
    if before is not None:
        count = max(count, before.total)
    unknown = ObjectState(NotKnown(applier.why, contact), UnknownHealth(applier.why), is_wanted=False)
    return ClusterState(
        name=name,
        kept=dict.fromkeys(before.kept, unknown) if before is not None else {},
        syncs={lag: count if lag is Lag.UNKNOWN else 0 for lag in Lag},
        healths={word: count if word is HealthWord.UNKNOWN else 0 for word in HealthWord},
        why_away=applier.why,
        last_contact=contact,
        applier=applier,
        otherwise=unknown,
    )


def _of_another_revision(state: ClusterState, tells: str, ours: str) -> ClusterState:
    """What is as another revision says is not known to be as ours does; how it fares is told all the same."""
    pending = Pending(f"{tells}, and not of {_short(ours)}")
    syncs = {**state.syncs, Lag.SYNCED: 0, Lag.PENDING: state.syncs[Lag.PENDING] + state.syncs[Lag.SYNCED]}
    kept = {
        identity: found if found.sync.lag is not Lag.SYNCED else found._replace(sync=pending)
        for identity, found in state.kept.items()
    }
    otherwise = state.otherwise if state.otherwise.sync.lag is Lag.UNKNOWN else ObjectState(pending, HEALTHY)
    return replace(state, syncs=syncs, kept=kept, otherwise=otherwise)


def _short(revision: str) -> str:
    return revision.rpartition(":")[2][:_SHORT] or "none"
