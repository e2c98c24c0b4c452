"""One-shot use of the shell: open members and journal, look once, plan, and perhaps act. What a command line needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.adapters.clock import Clock, SystemClock
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.kubeconfig import MemberConfig, load_members
from reconciler.adapters.kube.members import Members, UserAgent
from reconciler.adapters.kube.profiles.live_access import LiveAccess
from reconciler.daemon.observing.opening import LaterKeys, Opener, no_keys
from reconciler.daemon.observing.reach import WHOLE, Reach, pulling
from reconciler.daemon.observing.reading import EVERYTHING, Extent, Known, Reading, answering, read, remembered
from reconciler.daemon.observing.suspensions import restrained
from reconciler.daemon.rollouts.once import StagedOnce
from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
from reconciler.daemon.round.act import Acting, Result, act, not_held, waves_by_cluster
from reconciler.daemon.round.dry_runs import dry_run
from reconciler.daemon.round.facts import facts_of, last_contacts, looked_health, not_healthy
from reconciler.daemon.round.failures import failures_after, faults_after
from reconciler.daemon.round.faults import log_faults
from reconciler.daemon.round.history.told import Told
from reconciler.daemon.round.hold import Holder
from reconciler.daemon.round.picture import merged, with_faults
from reconciler.daemon.round.recover import answered, recover
from reconciler.daemon.round.remember import record_picture, remember
from reconciler.engine import Round, World
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import AppliedRow, Event, EventKind
from reconciler.model.observation import ClusterObservation, Observations, Read, Workload
from reconciler.report.status.state_document import Picture
from reconciler.stages.observations import in_force
from reconciler.stages.plan import kept_waves
from reconciler.stages.revisions import with_standing
from reconciler.stages.state import FleetState, StateTables, waits_for_person

_NOT_BEGUN = "the revision could not begin in the cluster, since its record could not be written there"


class Access(Struct, frozen=True, kw_only=True):
    """How the members and the journal are reached, and what is known of kinds.

    `clusters`: only these; empty: all of the store.
    """

    interpreters: Registry
    kubeconfig: Path | None = None
    journal: Path | None = None
    clusters: tuple[str, ...] = ()
    clock: Clock = field(default_factory=SystemClock)
    store: str = ""
    """How the store was named, for the picture that `status` shows."""
    open: Opener = no_keys
    """Decrypts what sops encrypted."""
    later_keys: LaterKeys | None = None
    """Tells what could be decrypted only later; None: all is known at once."""
    who: str = ""
    """The person who runs the command, for history; empty: nobody, a service."""
    revisions: RevisionsInForce | None = None
    """Older revisions of the store; None: it has none."""
    profiles: LiveAccess | None = None
    """How clusters that follow an inventory are reached; None: the kubeconfig says it of all."""
    reach: Reach = WHOLE
    """Which clusters a service applies to."""
    stage: str = ""
    """Only in this stage of a Rollout may a revision begin; empty: in every one."""


def configs_of(fleet: Fleet, access: Access) -> Mapping[str, MemberConfig | ConfigurationError]:
    """How each member is reached, by name, or why that is not known.

    Raises:
        ConfigurationError: the kubeconfig cannot be read at all.
    """
    clusters = [cluster for _, cluster in sorted(fleet.clusters.items())]
    return load_members(access.kubeconfig, clusters) if access.profiles is None else access.profiles.configs(clusters)


@asynccontextmanager
async def open_members(fleet: Fleet, access: Access) -> AsyncIterator[Members]:
    """The members of the fleet. Nothing is connected before the first request."""
    if access.profiles is not None:
        await access.profiles.refresh(fleet.settings.name)
    configs = configs_of(fleet, access)
    agent = UserAgent(fleet.settings.name or "unnamed", fleet.revision)
    async with Members.open(configs, agent=agent, clock=access.clock, is_brief=True) as members:
        yield members


async def plan_once(fleet: Fleet, access: Access, *, at: str | None = None, server_side: bool = False) -> Round:
    """The round that would be made now, without writing anything. The journal is read when there is one.

    `server_side`: let the API servers judge every update by a dry run, not only the doubtful ones. `at`: as of this
    time, with what descheduling and failover would decide then.
    """
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        extent = Extent(clusters=access.clusters, elsewhere=_pulling(fleet, access), at=at or "", open=access.open)
        reading = await _read(fleet, members, known, access, extent)
        once = StagedOnce(access.revisions, access.clock, known, access.open)
        reading, planned = await once.plan(reading, members, looked_state, access.stage)
        planned = await dry_run(planned, members, reading.world, every=server_side)
    planned = restrained(planned, in_force(known.suspensions, reading.now), reading.now)
    return _with_rollouts(planned, once)


async def decide_once(fleet: Fleet, access: Access) -> Reading:
    """What is decided now, with the members' free capacity and what the journal knows: placements and constraints."""
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        reading = await _read(fleet, members, known, access)
        return await StagedOnce(access.revisions, access.clock, known).as_recorded(reading, members)


async def observe_once(fleet: Fleet, access: Access) -> Observations:
    """What is known of every member now: capacity, workloads, and what the journal remembers."""
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        world = (await _read(fleet, members, known, access, Extent(deep=True))).world
    return replace(world.observations, clusters=dict(_with_what_served(world)))


def _pulling(fleet: Fleet, access: Access) -> frozenset[str]:
    """Clusters with a process of their own, but for those that were named."""
    return pulling(fleet) - frozenset(access.clusters)


async def _read(fleet: Fleet, members: Members, known: Known, access: Access, extent: Extent = EVERYTHING) -> Reading:
    return await read(fleet, members, known, access.clock, access.interpreters, extent)


def _with_what_served(world: World) -> Iterator[tuple[str, ClusterObservation]]:
    for name, seen in world.observations.clusters.items():
        rows = world.ledger.get(name, {})
        workloads = {
            identity: _as_recorded(workload, rows.get(identity)) for identity, workload in seen.workloads.items()
        }
        yield name, replace(seen, workloads=workloads)


def _as_recorded(workload: Workload, row: AppliedRow | None) -> Workload:
    """The workload with what the journal knows of it."""
    if row is None:
        return workload
    return replace(workload, established=row.established, manifest_digest=row.manifest_digest)


async def _known(fleet: Fleet, members: Members, path: Path | None) -> Known:
    if path is None or not path.exists():
        return Known()
    with Journal.open(path, read_only=True) as journal, journal.transaction():
        known = remembered(journal)
    if not known.unanswered:
        return known
    reachable, _ = await answering(fleet, members, known.cluster_uids)
    return await answered(known, reachable, fleet)


async def _recovered(journal: Journal, fleet: Fleet, members: Members) -> Known:
    """What the journal knows once the requests that an earlier command left unanswered were looked into."""
    known = remembered(journal)
    if not known.unanswered:
        return known
    reachable, _ = await answering(fleet, members, known.cluster_uids)
    return remembered(journal) if (await recover(journal, reachable, fleet)).about else known


class Applied(Struct, frozen=True, kw_only=True):
    """What `apply` did: the round and the results of its changes; `is_agreed` False: the person said no."""

    round: Round
    results: tuple[Result, ...] = ()
    is_agreed: bool = True
    closed: Mapping[str, str] = field(default_factory=dict)
    """Why nothing may be written, by the scope of a person's order."""

    @property
    def left_to_persons(self) -> int:
        """How many changes wait until a person lets them pass."""
        return sum(waits_for_person(change, self.closed) for change in self.round.plan.changes)


async def apply_once(
    fleet: Fleet,
    access: Access,
    agree: Callable[[Round], bool],
    tell: Callable[[Result], None] = lambda result: None,
) -> Applied:
    """Look, show the plan to `agree`, make exactly that plan, and record it.

    Raises:
        ConfigurationError: the store does not name the fleet, or the journal belongs to another one.
        JournalLocked: a daemon or another apply holds the journal.
        FleetHeld: another journal holds the fleet.
    """
    if not fleet.settings.name:
        raise ConfigurationError("the store has no document of kind Fleet with a name; 'reconciler init' writes one")
    assert access.journal is not None, "a fleet with a name has a journal"
    with Journal.open(access.journal) as journal:
        check_fleet(journal, fleet)
        async with open_members(fleet, access) as members:
            holder = Holder(journal, access.clock)
            if not fleet.settings.observe_only:
                await holder.refuse_others(members.values(), fleet.settings.name)
            known = await _recovered(journal, fleet, members)
            extent = Extent(clusters=access.clusters, elsewhere=_pulling(fleet, access), open=access.open)
            reading = await _read(fleet, members, known, access, extent)
            once = StagedOnce(access.revisions, access.clock, known, access.open)
            reading, planned = await once.plan(reading, members, looked_state, access.stage)
            planned = await dry_run(planned, members, reading.world)
            planned = restrained(planned, in_force(known.suspensions, reading.now), reading.now)
            planned = _with_rollouts(planned, once)
            if planned.plan.waves and not agree(planned):
                return Applied(round=planned, is_agreed=False)
            _record_clusters(journal, reading)
            refused = await once.commit((journal, holder.enter))
            acting = Acting(
                members=members,
                journal=journal,
                fleet=fleet.settings.name,
                revision=fleet.revision,
                interpreters=access.interpreters,
                tell=tell,
                clock=access.clock,
                lost=lambda member: holder.lost(member, fleet.settings.name),
            )
            if planned.plan.waves:
                journal.record_events([_apply_event(journal, planned, access.who, reading.now)])
            results = await _act(planned, acting, holder, refused)
            remember(journal, planned, reading, results)
            _record_picture(journal, planned, reading, results, access)
    return Applied(round=planned, results=results, closed=reading.world.observations.closed)


def _record_picture(
    journal: Journal, planned: Round, reading: Reading, results: tuple[Result, ...], access: Access
) -> None:
    """What `status` shows from now on."""
    picture, world = merged(None, planned, results, None), reading.world
    failures = failures_after({}, picture, results)
    faults = faults_after({}, failures, results)
    log_faults((), faults.values())
    picture = with_faults(picture, {}, faults)
    read = {name: reading.now for name, member in world.members.items() if isinstance(member, Read)}
    health = looked_health(planned, world, access.interpreters)
    for result in results:
        if result.health is not None:
            health[result.change.cluster][result.change.identity] = result.health
    facts = replace(
        facts_of(picture, world.members),
        elsewhere=world.elsewhere,
        failures=failures,
        health=not_healthy(health),
        ledger=journal.ledger(),
        closed=world.observations.closed,
        last_contact={**last_contacts(journal.state()), **read},
    )
    states = StateTables()
    shown = Picture(
        round=picture,
        state=states.update(facts),
        time=reading.now,
        source=access.store,
        rollouts=planned.rollouts,
    )
    record_picture(journal, shown)
    Told(journal).take_in(shown.state, states.turns, reading.now)


def _with_rollouts(planned: Round, once: StagedOnce) -> Round:
    """The round with where Rollouts stand."""
    plan = with_standing(planned.plan, planned.decision, once.progress)
    return replace(planned, plan=plan, rollouts=once.progress)


def looked_state(reading: Reading, planned: Round) -> FleetState:
    """How everything is by one look, before anything is made of the plan."""
    world = reading.world
    facts = replace(
        facts_of(planned, world.members),
        elsewhere=world.elsewhere,
        health=not_healthy(looked_health(planned, world, world.interpreters)),
        ledger=world.ledger,
        closed=world.observations.closed,
    )
    return StateTables().update(facts)


def _apply_event(journal: Journal, planned: Round, who: str, now: str) -> Event:
    """Who is about to make how many changes: known also of an `apply` that does not come to its end."""
    changes = sum(map(len, planned.plan.waves))
    data = {"revision": planned.plan.head, "who": who or "a person", "changes": changes}
    return Event(round=journal.complete_rounds(), time=now, kind=EventKind.APPLY, subject="fleet", data=data)


async def _act(planned: Round, acting: Acting, holder: Holder, not_begun: Collection[str] = ()) -> tuple[Result, ...]:
    """`not_begun`: clusters in which the revision of the plan could not begin."""
    plan = planned.plan
    clusters = sorted({plan.changes[index].cluster for wave in plan.waves for index in wave})
    if not clusters:
        return ()
    failed = await holder.hold([acting.members[cluster] for cluster in clusters], acting.fleet)
    failed |= {name: MemberClusterError(name, _NOT_BEGUN) for name in clusters if name in not_begun}
    due = waves_by_cluster(plan)
    refused = tuple(chain.from_iterable(not_held(chain(*due[name]), error) for name, error in sorted(failed.items())))
    for result in refused:
        acting.tell(result)
    waves = kept_waves(plan.waves, lambda index: plan.changes[index].cluster not in failed)
    return (*refused, *await act(replace(plan, waves=waves), acting))


def check_fleet(journal: Journal, fleet: Fleet) -> None:
    """Bind a new journal to the fleet; refuse a journal of another one, unless the fleet was renamed openly."""
    name = fleet.settings.name
    if journal.fleet not in ("", name, *fleet.settings.previous_names):
        raise ConfigurationError(
            f"{journal.path}: it is the journal of fleet {journal.fleet}, and the store is fleet {name}; name the "
            f"journal of {name} with --journal, or none: each fleet has its own ({rename_advice(journal.fleet, name)})"
        )
    if journal.fleet != name:
        journal.record_fleet(name)


def rename_advice(former: str, name: str) -> str:
    """When a journal of another name may be gone on with, and what that does to a fleet which still is one."""
    return (
        f"only if {former} itself was renamed to {name}, add {former} to spec.previousNames of the Fleet document: "
        f"all that {former} runs is then judged, and deleted, by this store"
    )


def _record_clusters(journal: Journal, reading: Reading) -> None:
    known = journal.cluster_uids()
    for name, uid in sorted(reading.uids.items()):
        if name not in known:
            journal.record_cluster(name, uid)
