"""Read the clusters into a `FleetSnapshot`: who they are, what they offer, and which objects of ours they hold.

Source: design#pure-rounds; design#cluster-identity: a name that answers with another kube-system uid is Unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation, Member, Observations, Unlisted
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import ARRIVES, AppliedRow, Intent, JournalSnapshot, Ledger
from reconciler.api.problem import Problem
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.clock import Clock, within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import (
    can_fail_over,
    clusters_with_room,
    is_to_observe,
    workloads_to_observe,
)
from reconciler.controller.cluster_reads.members import (
    Reachable,
    ReadOne,
    ReadRequest,
    read_member,
    read_members,
    unless_silent,
    why_unread,
)
from reconciler.controller.cluster_reads.scope import Decryption, ReadScope, interest_in, opened_for, with_unasked
from reconciler.documents import Schema, schema_of_openapi
from reconciler.errors import ANOTHER_CLUSTER
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.sqlite_journal import Journal
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.member_clusters import MemberClusters
from reconciler.observations import in_force
from reconciler.observe.observe_cluster import observe
from reconciler.ownership import fleet_names
from reconciler.placement import closed_by
from reconciler.planner import copies_in
from reconciler.scheduler import KindSchemas, Schedule, remembered_times, schedule_fleet, tick


class RoundReading(Struct, frozen=True, kw_only=True):
    """A reading: the snapshot, the schedule that it rests on, and the kube-system uids that were seen."""

    snapshot: FleetSnapshot
    schedule: Schedule
    uids: Mapping[str, str]


def remembered(journal: Journal) -> JournalSnapshot:
    """Return the journal's state, read in one consistent view."""
    with journal.transaction():
        unanswered = tuple(journal.open_intents().values())
        return JournalSnapshot(
            ledger=with_unanswered(journal.ledger(), unanswered),
            released=journal.released(),
            observations=Observations(constraints=constraints_in(journal), previous=journal.previous_placements()),
            cluster_uids=journal.cluster_uids(),
            record_key=journal.hash_key,
            has_history=journal.complete_rounds() > 0,
            suspensions=journal.suspensions(),
            losses=journal.losses(),
            timers=journal.timers(),
            rollouts=journal.rollout_records(),
            rollout_documents=journal.rollout_documents(),
            former=journal.last_revision(),
            confirmation=journal.confirmation(),
            unanswered=unanswered,
        )


def with_unanswered(ledger: Ledger, intents: Iterable[Intent]) -> Ledger:
    """Return the ledger plus objects of requests with unknown outcome: a run must not be started twice."""
    missing: dict[str, dict[Identity, AppliedRow]] = {}
    for intent in intents:
        if intent.action in ARRIVES and intent.identity not in ledger.get(intent.cluster, {}):
            row = AppliedRow(cluster=intent.cluster, gvk=intent.gvk, identity=intent.identity, revision=intent.revision)
            missing.setdefault(intent.cluster, {})[intent.identity] = row
    if not missing:
        return ledger
    # Clusters without such objects keep the same mapping, by which they are compared.
    patched = {name: dict(sorted({**ledger.get(name, {}), **rows}.items())) for name, rows in missing.items()}
    return dict(sorted({**ledger, **patched}.items()))


def constraints_in(journal: Journal) -> tuple[Constraint, ...]:
    """Return the constraints of ticks and persons, those of ticks first; ended ones too."""
    evictions = (
        Constraint(
            identity=order.identity,
            cluster=order.cluster,
            replicas_max=0,
            excludes=True,
            reason=f"evicted by {order.who or 'a person'}{f': {order.reason}' if order.reason else ''}",
            until=order.until,
            since=order.since,
            tick=Tick.EVICTION,
        )
        for order in journal.evictions()
    )
    return (*journal.constraints(), *evictions)


ReadMembers = Callable[[Reachable, Mapping[str, ReadRequest], ReadOne], Awaitable[dict[str, Member]]]
"""`read_members`, or a version that waits for fewer clusters."""


class ReadExtent(Struct, frozen=True, kw_only=True):
    """Limits of a reading.

    `clusters`: read only these (empty: all); placement still depends on all of them. `scope`: only this; None:
    everything. `deep`: read nodes, pods and workloads even if no policy asks for free capacity.
    `at`: as of this time (RFC 3339 UTC), with the decisions of the service's ticks then; empty: now, without.
    """

    clusters: tuple[str, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    """Clusters that another process applies to: they are not read, and waited for by nobody."""
    scope: ReadScope | None = None
    deep: bool = False
    at: str = ""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    """Kinds that members have described already."""
    at_fault: Mapping[str, Mapping[GVK, Unlisted]] = field(default_factory=dict)
    """By cluster the kinds that gave no answer the last time: rounds do not ask for them again."""
    undecided: Mapping[Identity, Problem] = field(default_factory=dict)
    """Objects that this process cannot schedule, and that stay as they are."""
    keys: Decryption | None = None
    """None: nothing is decrypted."""
    read: ReadMembers = read_members
    """The function that reads the clusters."""


EVERYTHING = ReadExtent()


async def read(
    fleet: Fleet,
    members: MemberClusters,
    known: JournalSnapshot,
    clock: Clock,
    interpreters: Registry,
    extent: ReadExtent = EVERYTHING,
) -> RoundReading:
    """Read the members of the fleet as far as one round needs it; a cluster that fails is NotRead."""
    reachable, uids = await answering(fleet, members, known.cluster_uids, fleet.clusters.keys() - extent.elsewhere)
    seen_at = clock.now()
    observations = await observe_members(fleet, reachable, known, interpreters, seen_at, deep=extent.deep)
    now, copies = extent.at or seen_at, copies_in(known.ledger)
    observations = replace(observations, closed=closed_by(in_force(known.suspensions, now)))
    under = partial(schedule_fleet, fleet, now=now, interpreters=interpreters, copies=copies)
    schedule = under(observations)
    if extent.at:
        observations, _ = remembered_times(observations, known.timers)
        ticked = tick(schedule, observations, now, under)
        schedule = ticked.schedule
        previous = {**observations.previous, **ticked.restored}
        observations = replace(observations, constraints=ticked.constraints, previous=previous)
    snapshot = FleetSnapshot(fleet=fleet, interpreters=interpreters, now=now, observations=observations, journal=known)
    return RoundReading(
        snapshot=await with_objects(snapshot, schedule, reachable, extent), schedule=schedule, uids=uids
    )


async def with_objects(
    snapshot: FleetSnapshot,
    schedule: Schedule,
    reachable: Reachable,
    extent: ReadExtent,
    progress: Callable[[], None] = lambda: None,
) -> FleetSnapshot:
    """Return the snapshot with the objects that schedule and extent want. `progress`: told of each cluster read."""
    chosen = {
        name: member
        for name, member in reachable.items()
        if name not in extent.elsewhere and (not extent.clusters or name in extent.clusters)
    }
    scope = extent.scope
    interest = {
        name: replace(request, at_fault=extent.at_fault[name]) if name in extent.at_fault else request
        for name, request in interest_in(schedule, snapshot.journal.ledger, scope).items()
    }
    due = {name: member for name, member in chosen.items() if name in interest}
    read_one = partial(
        read_member,
        fleet_names=fleet_names(snapshot.fleet.settings),
        interpreters=snapshot.interpreters,
        progress=progress,
    )
    read = await extent.read(due, interest, read_one)
    objects = read if scope is None else with_unasked(chosen, read, scope)
    only = scope.only if scope is not None else None
    schemas = await described_kinds(schedule, chosen, extent.schemas, only)
    return replace(
        snapshot,
        members=objects,
        only=only,
        schemas=schemas,
        opened=await opened_for(schedule, only, extent.keys),
        elsewhere=extent.elsewhere,
        undecided=extent.undecided,
    )


async def described_kinds(
    schedule: Schedule, reachable: Reachable, known: Mapping[GVK, Schema], only: frozenset[Identity] | None = None
) -> dict[GVK, Schema]:
    """Return schemas of custom kinds (`only`: of these templates) that members describe and the store does not."""
    schemas = dict(known)
    defined = KindSchemas(schedule)
    templates = schedule.fleet.templates
    chosen = templates if only is None else templates.keys() & only
    kinds = {templates[identity].gvk for identity in chosen} - schemas.keys()
    for gvk in sorted(gvk for gvk in kinds if defined.of(gvk) is None):
        for member in reachable.values():
            if isinstance(member, str):
                continue
            answer = await try_await(unless_silent(member, _described(member, gvk), timing.PROMPT_S))
            if answer.fault is not None:
                why_unread(member.name, answer.fault, gvk)
            elif answer.value is not None:
                schemas[gvk] = answer.value
                break
    return schemas


async def _described(member: MemberCluster, gvk: GVK) -> Schema | None:
    return schema_of_openapi(await member.openapi(gvk.api_version), gvk)


async def answering(
    fleet: Fleet, members: MemberClusters, recorded: Mapping[str, str], names: Collection[str] | None = None
) -> tuple[Reachable, dict[str, str]]:
    """Return the clients with their recorded identity, the errors of the others, and the seen kube-system uids.

    `names`: of these clusters alone; None: of all of the fleet.
    """
    chosen = [name for name in fleet.clusters if names is None or name in names]
    reachable: dict[str, MemberCluster | str] = {
        name: str(members.failed[name]) if name in members.failed else "no access is configured" for name in chosen
    }
    uids: dict[str, str] = {}

    async def meet(name: str) -> None:
        answer = await try_await(within(members[name].identity(), timing.PROMPT_S))
        if answer.value is None:
            reachable[name] = why_unread(name, answer.fault)
        elif recorded.get(name, answer.value) != answer.value:
            reachable[name] = ANOTHER_CLUSTER
        else:
            reachable[name], uids[name] = members[name], answer.value

    await asyncio.gather(*(meet(name) for name in chosen if name in members))
    others = {name: uid for name, uid in recorded.items() if name in fleet.clusters and name not in chosen}
    for name, first in second_names({**others, **uids}, recorded).items():
        if name not in uids:
            continue
        # Under two names, what leaves the one would be deleted under the other.
        reachable[name] = (
            f"it is the same cluster as {first} (one kube-system uid); take one of the two out of the store"
        )
        del uids[name]
    return reachable, uids


def second_names(uids: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Names of clusters that answer under another name too, to that name: the one that was recorded, else the first."""
    names: dict[str, str] = {}
    for name in sorted(uids, key=lambda name: (name not in recorded, name)):
        names.setdefault(uids[name], name)
    return {name: names[uid] for name, uid in uids.items() if names[uid] != name}


async def observe_members(
    fleet: Fleet,
    reachable: Reachable,
    known: JournalSnapshot,
    interpreters: Registry,
    now: str,
    *,
    deep: bool = False,
    decided: Schedule | None = None,
) -> Observations:
    """Observe served kinds; nodes, pods and workloads if a policy needs capacity (`decided`), or with `deep`."""
    with_room = frozenset(fleet.clusters) if deep else clusters_with_room(fleet, known.ledger)
    written = workloads_to_observe(fleet, interpreters, decided) if with_room else {}
    is_wanted = partial(is_to_observe, interpreters=interpreters, decided=decided, fails_over=can_fail_over(fleet))

    async def one(name: str, member: MemberCluster | str) -> ClusterObservation:
        unreachable = ClusterObservation(name=name, reachable=False, observed_at=now)
        if isinstance(member, str):
            return unreachable
        # All others wait: a silent one must not hold them up to its deadlines.
        answer = await try_await(unless_silent(member, observation_of(member), timing.PROMPT_S))
        if answer.value is None:
            why_unread(name, answer.fault)
        return answer.value or unreachable

    async def observation_of(member: MemberCluster) -> ClusterObservation:
        if member.name in with_room:
            applied = {
                identity: ResourceRef(row.gvk, identity.namespace, identity.name)
                for identity, row in known.ledger.get(member.name, {}).items()
                if is_wanted(identity)
            }
            return await observe(member, {**written, **applied}.values(), interpreters, now=now)
        discovery = await member.discover(refresh=True)
        apis = frozenset(discovery.served())
        return ClusterObservation(name=member.name, observed_at=now, apis=apis, silent=discovery.stale)

    observed = await asyncio.gather(*(one(name, member) for name, member in sorted(reachable.items())))
    return replace(known.observations, clusters={observation.name: observation for observation in observed})
