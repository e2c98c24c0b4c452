"""Inputs of Rollouts: older revisions of the store, and health probes of clusters in progress.

Source: ADR 18: blobs are shared, so two revisions cost what differs; a commit that is gone freezes its clusters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.content import JsonObject
from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.api.rollout_progress import GateMet, GateStatus, GateUnknown, Record, ReleaseFacts, Staging
from reconciler.api.rollouts import Ancestry, Gate, Layout, MetricCheck
from reconciler.clock import within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable, why_unread
from reconciler.controller.rollouts.requests import Enter
from reconciler.controller.tasks import in_thread
from reconciler.errors import MemberClusterError
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.rollouts import GatedCopy, gate_status, lay_out
from reconciler.state import FleetState, copies_of
from reconciler.templates import hook_of

FleetAt = Callable[[str], Awaitable[Fleet | None]]
"""The fleet of a revision; None: it is not there, or cannot be read."""


class RevisionSource(Protocol):
    """The revisions of a store."""

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        """Return those of these that are ancestors of a revision, and those that are missing. Reads files."""

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """The commits that texts name. Reads files."""

    def keep(self, revisions: Collection[str]) -> None:
        """Keep these readable, and no others. Writes files."""


class RevisionsInForce:
    """The revisions that are recorded, pinned, or were in force a moment ago."""

    def __init__(self, source: RevisionSource, fleet_at: FleetAt) -> None:
        self._source = source
        self._fleet_at = fleet_at
        self._fleets: dict[str, Fleet] = {}
        self._wanted: tuple[frozenset[str], str] | None = None
        self._lineage = Ancestry()
        self._readable: frozenset[str] = frozenset()
        self._head: Fleet | None = None

    async def of(self, head: Fleet, recorded: Collection[str], pins: Collection[str]) -> ReleaseFacts:
        """Return recorded revisions and those that pins name."""
        if self._head is not None and self._head is not head:
            # What was in force a moment ago is the revision of whoever is behind, and need not be read again.
            self._fleets[self._head.revision] = self._head
        self._head = head
        pinned = await in_thread(self._source.resolve, sorted(pins)) if pins else {}
        wanted = frozenset({*recorded, *pinned.values()} - {""})
        if self._wanted != (wanted, head.revision):
            self._lineage = await in_thread(self._source.ancestry, sorted(wanted), head.revision)
            self._wanted = (wanted, head.revision)
        for revision in sorted(wanted - self._fleets.keys() - {head.revision}):
            fleet = await self._fleet_at(revision)
            if fleet is not None:
                self._fleets[revision] = fleet
        self._fleets = {revision: fleet for revision, fleet in self._fleets.items() if revision in wanted}
        readable = {revision: fleet for revision, fleet in self._fleets.items() if revision != head.revision}
        missing = wanted - readable.keys() - {head.revision}
        return ReleaseFacts(fleets=readable, order=self._lineage.order, missing=missing, pinned=pinned)

    async def fleet(self, revision: str) -> Fleet | None:
        """The fleet of one revision; None: it is not there, or cannot be read."""
        if self._head is not None and self._head.revision == revision:
            return self._head
        return self._fleets.get(revision) or await self._fleet_at(revision)

    async def checked_out(self) -> str:
        """Return the commit whose files are in the work tree; empty: they differ from HEAD, or there is none."""
        return (await in_thread(self._source.resolve, ["HEAD"])).get("HEAD", "")

    async def keep(self, revisions: Collection[str]) -> None:
        """Keep recorded revisions, before anything depends on them."""
        wanted = frozenset(revisions) - {""}
        if wanted != self._readable:
            await in_thread(self._source.keep, sorted(wanted))
            self._readable = wanted


Writing = tuple[Journal, Enter]
"""The places of a beginning's record: the journal, and the cluster."""


class RolloutInputs(Struct, frozen=True, kw_only=True):
    """The inputs of staging a schedule. `reported`: the state after the last round.

    `away`: clusters that cannot be changed now, and why. `closed`: those closed by windows, with the end (RFC 3339).
    """

    reachable: Reachable
    journal: JournalSnapshot
    copies: Mapping[Identity, Collection[str]]
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    reported: FleetState | None = None


def away_in(reachable: Reachable, held: Mapping[str, str], closed: Mapping[str, str]) -> dict[str, str]:
    """Return why clusters cannot be changed now: unreachable, owned by another process, or suspended by a person."""
    away = {name: member for name, member in reachable.items() if isinstance(member, str)}
    away |= held
    if "fleet" in closed:
        return dict.fromkeys(reachable, closed["fleet"]) | away
    return {name: closed[f"cluster {name}"] for name in reachable if f"cluster {name}" in closed} | away


Records = Mapping[str, Record]
"""By cluster."""

AskMetrics = Callable[[tuple[MetricCheck, ...], str, str], Awaitable[GateStatus | None]]
"""The reason why the metrics of a gate do not hold in a cluster, since RFC 3339; None: they do."""

_AT_ONCE = 16
"""So many objects of a cluster are asked for side by side."""


class Followed(Struct, frozen=True, kw_only=True):
    """A Rollout with the clusters of its stages, and the templates that go with it."""

    name: str
    layout: Layout
    identities: frozenset[Identity]


def followed_in(fleet: Fleet, selection: Staging) -> tuple[Followed, ...]:
    """Return every Rollout of a fleet, with its selection."""
    by_name: dict[str, list[Identity]] = {rollout.name: [] for rollout in fleet.rollouts}
    for identity, names in selection.rollouts.items():
        for name in names:
            by_name[name].append(identity)
    return tuple(
        Followed(
            name=rollout.name, layout=lay_out(rollout, fleet.clusters), identities=frozenset(by_name[rollout.name])
        )
        for rollout in fleet.rollouts
    )


Bindings = Mapping[Identity, Binding]
LastMet = dict[tuple[str, str], Bindings]
"""By Rollout and cluster in progress the bindings with which its gate was last met. It is lost with the process."""


def probes_of(followed: Followed, records: Records, state: FleetState | None, last: LastMet) -> dict[str, GateStatus]:
    """Return the health probes of clusters in progress. `state`: of the fleet, after the last round.

    Conditions of gates are left out: nobody watches the objects that they name. `last` is updated.
    """
    if state is None or state.facts.schedule.staging is None:
        return {}
    schedule = state.facts.schedule
    drawn = state.facts.schedule.staging.in_force.get(followed.name, {})
    statuses: dict[str, GateStatus] = {}
    for name, of_stage in followed.layout.stage_of.items():
        record, cluster = records.get(name), state.clusters.get(name)
        if name in state.facts.elsewhere:
            # Also before it begins there: nothing that happens later makes anybody look again.
            statuses[name] = GateUnknown("another process applies there")
            continue
        if record is None or not record.revision or record.completed_at or cluster is None:
            last.pop((followed.name, name), None)
            continue
        if cluster.why_away is not None:
            statuses[name] = GateUnknown(cluster.why_away)
        else:
            plain, at, bindings = replace(of_stage.stage.gate, checks=()), (followed.name, name), schedule.bindings
            copies = [
                copy._replace(is_scaling=_is_scaling(copy.identity, name, last.get(at, bindings), bindings))
                for each in copies_of(cluster, followed.identities)
                if (copy := _of_hook(each, schedule.fleet.templates.get(each.identity))) is not None
            ]
            status = statuses[name] = gate_status(plain, drawn.get(name, ""), copies, {})
            if isinstance(status, GateMet):
                last[at] = bindings
    return statuses


def _of_hook(copy: GatedCopy, template: Template | None) -> GatedCopy | None:
    """Return a failed run as the gate counts it: a hook fails it at once, unless nothing is to stop (None)."""
    hook = hook_of(template.annotations) if copy.has_failed and template is not None else None
    return None if hook is not None and hook.goes_on else copy._replace(has_failed=hook is not None)


def _is_scaling(identity: Identity, cluster: str, before: Bindings, after: Bindings) -> bool:
    """Return whether a copy was and is in a cluster, with other replicas."""
    was, now = (binding.replicas_on(cluster) if (binding := each.get(identity)) else None for each in (before, after))
    return was is not None and now is not None and was != now


async def with_conditions(
    followed: Followed, records: Records, plain: Mapping[str, GateStatus], look: RolloutInputs, metrics: AskMetrics
) -> dict[str, GateStatus]:
    """The same with conditions and metrics of gates, which are looked up where all the rest is well."""
    state = look.reported

    async def ask(name: str, gate: Gate, state: FleetState) -> GateStatus:
        status: GateStatus = GateMet(records[name].revision)
        if gate.checks:
            status = await _checked(gate, records[name].revision, followed.identities, state, name, look.reachable)
        if not gate.metrics or not isinstance(status, GateMet):
            return status
        return await metrics(gate.metrics, name, records[name].begun_at) or status

    asking: dict[str, Awaitable[GateStatus]] = {}
    for name, of_stage in followed.layout.stage_of.items():
        gate, status = of_stage.stage.gate, plain.get(name)
        is_well = isinstance(status, GateMet) and status.revision == records[name].revision
        if (gate.checks or gate.metrics) and is_well and state is not None:
            asking[name] = ask(name, gate, state)
    statuses = await asyncio.gather(*asking.values())
    return {**plain, **dict(zip(asking, statuses, strict=True))}


async def _checked(
    gate: Gate, revision: str, identities: Collection[Identity], state: FleetState, name: str, reachable: Reachable
) -> GateStatus:
    """A cluster whose copies are well: whether the conditions of its gate hold, too."""
    member = reachable.get(name)
    if not isinstance(member, MemberCluster):
        return GateUnknown(member or "it was not asked yet")
    answer = await try_await(within(_read(gate, identities, state, member), timing.PATIENCE_S))
    if isinstance(answer.fault, MemberClusterError):
        return GateUnknown(str(answer.fault))
    if answer.value is None:
        return GateUnknown(why_unread(name, answer.fault, silence=f"no answer within {timing.PATIENCE_S:g} s"))
    copies, objects = answer.value
    return gate_status(gate, revision, copies, objects)


async def _read(
    gate: Gate, identities: Collection[Identity], state: FleetState, member: MemberCluster
) -> tuple[list[GatedCopy], dict[ResourceRef, JsonObject]]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def body(gvk: GVK, namespace: str, name: str) -> JsonObject | None:
        async with limit:
            live = await member.find(gvk, namespace, name)
        return live.body if live is not None else None

    named = [check.of for check in gate.checks if check.of is not None]
    bodies = await asyncio.gather(*(body(each.gvk, each.namespace, each.name) for each in named))
    objects = {each: body for each, body in zip(named, bodies, strict=True) if body is not None}
    if len(named) == len(gate.checks):
        return [], objects
    wanted = state.facts.manifests.get(member.name, {})
    kinds = {identity: wanted[identity].gvk for identity in sorted(identities) if identity in wanted}
    live = await asyncio.gather(*(body(gvk, each.namespace, each.name) for each, gvk in kinds.items()))
    copies = [GatedCopy(each, True, True, "", body) for each, body in zip(kinds, live, strict=True) if body is not None]
    return copies, objects
