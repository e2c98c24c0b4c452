"""One look at the world: who the members are, what they offer, what of ours they hold. The result is a `World`.

Source: design §3 (the pipeline), "Fleet store" (a name that answers with another kube-system uid is Unknown).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.journal import Journal
from reconciler.adapters.kube_client import MemberCluster
from reconciler.adapters.kube_members import Members
from reconciler.adapters.observe import observe
from reconciler.daemon.gather import Interest, gather
from reconciler.engine import Decision, World, copies_in, decide
from reconciler.errors import ClusterReplaced, MemberClusterError
from reconciler.interpreters.registry import interpreter_for
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.refs import GVK, Identity, ResourceRef
from reconciler.stages.wants_capacity import wants_capacity

Reachable = Mapping[str, MemberCluster | str]
"""The clients that answered, and why the others did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What outlives a round: from the journal, or empty where there is none (a pull-request check)."""

    ledger: Mapping[str, Mapping[Identity, AppliedRow]] = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    """Previous placements and constraints; its clusters are not used."""
    cluster_uids: Mapping[str, str] = field(default_factory=dict)
    record_key: bytes = b""
    has_history: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A look: the world, the decision that it rests on, and the kube-system uids that were seen."""

    world: World
    decision: Decision
    now: str
    uids: Mapping[str, str]


def remembered(journal: Journal) -> Known:
    """What the journal knows, read in one consistent view."""
    with journal.transaction():
        return Known(
            ledger=journal.ledger(),
            observations=Observations(constraints=journal.constraints(), previous=journal.previous_placements()),
            cluster_uids=journal.cluster_uids(),
            record_key=journal.hash_key,
            has_history=journal.complete_rounds() > 0,
        )


async def look(
    fleet: Fleet, members: Members, known: Known, clock: Clock, *, fresh: bool = False, deep: bool = False
) -> Looked:
    """Read every member of the fleet as far as one round needs it; a cluster that fails is NotRead.

    `deep`: read nodes, pods and workloads even where no policy asks for free capacity.
    """
    reachable, uids = await _reach(fleet, members, known.cluster_uids)
    now = clock.now()
    observations = replace(known.observations, clusters=await _observe(fleet, reachable, known, now, deep=deep))
    decision = decide(fleet, observations, now, copies=copies_in(known.ledger), fresh=fresh)
    names = (fleet.settings.name, *fleet.settings.previous_names)
    found = await gather(reachable, _interest(decision, known), names)
    world = World(
        fleet=fleet,
        members=found,
        observations=observations,
        ledger=known.ledger,
        record_key=known.record_key,
        has_history=known.has_history,
        fresh=fresh,
    )
    return Looked(world=world, decision=decision, now=now, uids=uids)


async def _reach(fleet: Fleet, members: Members, recorded: Mapping[str, str]) -> tuple[Reachable, dict[str, str]]:
    reachable: dict[str, MemberCluster | str] = {
        name: str(members.failed[name]) if name in members.failed else "no access is configured"
        for name in fleet.clusters
    }
    uids: dict[str, str] = {}

    async def meet(name: str) -> None:
        try:
            uid = await members[name].identity()
            if recorded.get(name, uid) != uid:
                raise ClusterReplaced(name, "another cluster answers under this name (its kube-system uid differs)")
        except MemberClusterError as error:
            reachable[name] = error.message
        else:
            reachable[name], uids[name] = members[name], uid

    await asyncio.gather(*(meet(name) for name in fleet.clusters if name in members))
    return reachable, uids


async def _observe(
    fleet: Fleet, reachable: Reachable, known: Known, now: str, *, deep: bool
) -> dict[str, ClusterObservation]:
    """Served kinds always; nodes, pods and workloads only where a policy divides by free capacity."""
    deep = deep or wants_capacity(fleet)

    async def one(name: str, member: MemberCluster | str) -> ClusterObservation:
        if isinstance(member, str):
            return ClusterObservation(name=name, reachable=False, observed_at=now)
        try:
            if deep:
                return await observe(member, _workloads(fleet, known, name), now=now)
            apis = frozenset((await member.discover()).served())
        except MemberClusterError:
            return ClusterObservation(name=name, reachable=False, observed_at=now)
        return ClusterObservation(name=name, observed_at=now, apis=apis)

    seen = await asyncio.gather(*(one(name, member) for name, member in sorted(reachable.items())))
    return {observation.name: observation for observation in seen}


def _workloads(fleet: Fleet, known: Known, cluster: str) -> tuple[ResourceRef, ...]:
    """The workloads whose state matters there: what the store holds and what was applied."""
    kinds = {identity: template.gvk for identity, template in fleet.templates.items()}
    kinds |= {identity: row.gvk for identity, row in known.ledger.get(cluster, {}).items()}
    return tuple(
        ResourceRef(gvk, identity.namespace, identity.name)
        for identity, gvk in sorted(kinds.items())
        if interpreter_for(*identity[:2]).replicas_path or identity.kind == "Pod"
    )


def _interest(decision: Decision, known: Known) -> dict[str, Interest]:
    templates = decision.fleet.templates
    kinds = {template.gvk for template in templates.values()}
    wanted: dict[str, set[ResourceRef]] = {name: set() for name in decision.fleet.clusters}
    for identity, binding in decision.bindings.items():
        template = templates.get(identity)
        gvk = template.gvk if template else GVK(identity.group, "v1", identity.kind)
        for cluster in binding.clusters:
            if cluster in wanted:
                wanted[cluster].add(ResourceRef(gvk, identity.namespace, identity.name))
    return {
        name: Interest(
            kinds=frozenset(kinds | {row.gvk for row in known.ledger.get(name, {}).values()}),
            wanted=frozenset(refs),
        )
        for name, refs in wanted.items()
    }
