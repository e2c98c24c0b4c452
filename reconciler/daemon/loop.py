"""The control loop: one task that waits for a nudge, reads, plans, acts and records; everything else only nudges.

Source: design, "Events are nudges": a round always reads state and enforces it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.journal import Journal
from reconciler.adapters.kube_members import Members, UserAgent
from reconciler.adapters.kube_watch import WatchEvent
from reconciler.adapters.kubeconfig import MemberConfig
from reconciler.adapters.source import Source
from reconciler.adapters.source_watch import wait_for
from reconciler.daemon.absent import Absent
from reconciler.daemon.act import Acting, Result, act
from reconciler.daemon.agenda import Agenda
from reconciler.daemon.beliefs import Beliefs
from reconciler.daemon.dry_runs import dry_run
from reconciler.daemon.fights import Fights
from reconciler.daemon.hold import hold
from reconciler.daemon.look import Glance, Known, Looked, Reachable, observe_members, reach, read_world, remembered
from reconciler.daemon.merged import merged
from reconciler.daemon.observation_news import is_news
from reconciler.daemon.picture_vitals import show
from reconciler.daemon.recover import recover
from reconciler.daemon.remember import record_picture, record_source_error, remember
from reconciler.daemon.store_in_force import StoreInForce
from reconciler.daemon.suspensions import in_force, suspend
from reconciler.daemon.vitals import Vitals
from reconciler.daemon.watches import Listeners, Watches
from reconciler.engine import Decision, Round, World, copies_in, decide, is_in_step, plan_round
from reconciler.errors import ConfigurationError, MemberClusterError, StoreError
from reconciler.model.fleet import Fleet
from reconciler.model.member import NotRead, Read
from reconciler.model.observation import LiveObject, Observations
from reconciler.model.plan import Action, Cause, Plan
from reconciler.model.refs import GVK, Identity
from reconciler.stages.guard import is_held_by_guard
from reconciler.stages.marks import FLEET_LABEL
from reconciler.stages.schema import Schema
from reconciler.stages.signatures import signatures
from reconciler.stages.wants_capacity import wants_capacity

log = logging.getLogger("reconciler")

_RETRY_MIN_S = 2.0
_RETRY_MAX_S = 300.0
_SETTLE_S = 0.05
"""Events come in bursts: a round waits this long for the rest of one."""
_NO_STORE_S = 1.0
"""Pause before a store that could never be read is tried again."""
_CAPACITY_S = 15.0
"""How often nodes and pods are read again while free capacity decides anything."""
_ABSENT_S = 1.0
"""How often it is looked up whether a cluster that could not be read is to be asked again."""
_HOLD_S = 10.0
"""So long it is taken for granted that the fleet is still held."""


ConfigsOf = Callable[[Fleet], Mapping[str, MemberConfig | ConfigurationError]]
"""How the members of a fleet are reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the loop works with; all of it is open."""

    source: Source
    store: StoreInForce
    journal: Journal
    members: Members
    configs_of: ConfigsOf
    agent: UserAgent
    clock: Clock
    vitals: Vitals


class ControlLoop:
    """One fleet, one journal, one task."""

    def __init__(self, parts: Parts) -> None:
        """Nothing is read before `run`."""
        self._parts = parts
        self._agenda = Agenda()
        self._beliefs = Beliefs()
        self._fights = Fights()
        self._absent = Absent()
        self._watches = Watches(Listeners(listed=self._listed, event=self._seen, trouble=self._trouble), parts.clock)
        self._fleet: Fleet | None = None
        self._decision: Decision | None = None
        self._signatures: Mapping[Identity, object] = {}
        self._observations = Observations()
        self._schemas: Mapping[GVK, Schema] = {}
        self._known = Known()
        self._reachable: Reachable = {}
        self._waiting: set[Identity] = set()
        self._confirming: set[Identity] = set()
        self._retries: dict[Identity, tuple[float, float]] = {}
        self._held_s: dict[str, float] = {}
        self._picture: Round | None = None
        self._stop = asyncio.Event()
        self._source_note = ""
        self._next_resync_s = 0.0
        self._next_capacity_s = 0.0

    def nudge(self) -> None:
        """Something outside changed: a suspension began or ended."""
        self._agenda.mark_everything()

    def reload(self) -> None:
        """Read the kubeconfig again; while it is unusable, the one in force stays."""
        if self._fleet is not None:
            try:
                self._parts.members.update(self._parts.configs_of(self._fleet))
            except ConfigurationError as error:
                log.error("the kubeconfig cannot be read; the old one stays in force",
                          extra={"event": "ReloadFailed", "error": str(error)})  # fmt: skip
        self._agenda.mark_store()
        self._agenda.mark_everything()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; a round that has begun is finished.

        Raises:
            JournalError: nothing may be done that cannot be recorded.
        """
        self._stop = stop
        self._known = remembered(self._parts.journal)
        tasks = [asyncio.create_task(work) for work in (self._watch_store(), self._watch_absent())]
        for task in tasks:
            task.add_done_callback(lambda _: self._agenda.wake.set())
        tasks.append(asyncio.create_task(self._wake_on(stop)))
        try:
            while not stop.is_set():
                await self._wait()
                for task in tasks:
                    if task.done() and not stop.is_set():
                        task.result()
                if stop.is_set():
                    break
                await self._round()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._watches.close()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._agenda.wake.set()

    async def _watch_store(self) -> None:
        while True:
            await self._parts.source.changed()
            self._agenda.mark_store()
            await self._parts.clock.sleep(_SETTLE_S)

    async def _watch_absent(self) -> None:
        clock, parts = self._parts.clock, self._parts
        while True:
            await clock.sleep(_ABSENT_S)
            if await self._absent.came_back(parts.members, self._known.cluster_uids, clock.monotonic_s()):
                self._agenda.mark_everything()

    async def _wait(self) -> None:
        """Until there is something to do, or a timer is due."""
        self._beat("idle")
        while self._agenda.is_empty:
            pause_s = min(self._due_s() - self._parts.clock.monotonic_s(), 5.0)
            if pause_s <= 0:
                self._timers()
                continue
            self._agenda.wake.clear()
            await wait_for(self._agenda.wake, pause_s, self._parts.clock)
            self._beat("idle")
            if self._stop.is_set():
                return

    def _due_s(self) -> float:
        return min([self._next_resync_s, self._next_capacity_s, *(due for due, _ in self._retries.values())])

    def _timers(self) -> None:
        now_s = self._parts.clock.monotonic_s()
        if now_s >= self._next_resync_s:
            self._agenda.mark_everything()
        if now_s >= self._next_capacity_s:
            self._agenda.capacity = True
        for identity, (due_s, _) in self._retries.items():
            if now_s >= due_s:
                self._agenda.mark(identity)

    # Events

    def _listed(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> None:
        if isinstance(self._reachable.get(cluster), str):
            self._agenda.mark_everything()
            return
        self._agenda.mark(*self._beliefs.doubtful(cluster, gvk.group_kind, objects))

    def _seen(self, cluster: str, event: WatchEvent) -> None:
        live = event.object
        if self._fights.pause_left_s(cluster, live.identity, self._parts.clock.monotonic_s()) > 0:
            return  # It is looked at again when the pause is over.
        if event.type != "DELETED" and (self._beliefs.holds(cluster, live) or self._is_as_wanted(cluster, live)):
            return
        self._beliefs.doubt(cluster, live.identity)
        self._agenda.mark(live.identity)

    def _is_as_wanted(self, cluster: str, live: LiveObject) -> bool:
        """Whether an event shows nothing that concerns us: a status that moved on, a field that is not ours.

        Health matters while something waits for it; then a round has to look.
        """
        picture, identity = self._picture, live.identity
        manifest = picture.manifests.get(cluster, {}).get(identity) if picture else None
        if manifest is None or self._decision is None or identity in self._waiting or identity in self._retries:
            return False
        world = World(fleet=self._decision.fleet, ledger=self._known.ledger, record_key=self._known.record_key)
        if not is_in_step(world, self._decision, manifest, live):
            return False
        self._beliefs.confirm(cluster, identity, live.uid, live.resource_version)
        return True

    def _trouble(self, cluster: str, error: MemberClusterError) -> None:
        vital = self._parts.vitals.clusters.get(cluster)
        if vital is not None and vital.is_up:
            vital.is_up, vital.why = False, error.message
            log.warning("cluster does not answer", extra={"event": "ClusterUnreachable", "cluster": cluster,
                                                          "error": error.message})  # fmt: skip
            self._beliefs.forget(cluster)
            self._agenda.mark_everything()

    # Rounds

    async def _round(self) -> None:
        agenda, self._agenda = self._agenda, Agenda(everything=False, store=False, wake=self._agenda.wake)
        if agenda.store:
            await self._read_store(agenda)
        if self._fleet is None:
            self._agenda.everything = True
            await self._parts.clock.sleep(_NO_STORE_S)
            self._agenda.store = True
            return
        started_s = self._parts.clock.monotonic_s()
        fleet, now = self._fleet, self._parts.clock.now()
        only = await self._look_around(fleet, agenda, now)
        decision = self._decision
        assert decision is not None, "looking around decides"
        if only is not None and not only:
            return
        self._beat("reading the clusters")
        glance = Glance(only=only, schemas=self._schemas)
        world = await read_world(fleet, self._reachable, self._known, decision, self._observations, glance)
        self._schemas = world.schemas
        planned = await asyncio.to_thread(plan_round, world, now, decision)
        planned = await dry_run(planned, self._parts.members, world)
        planned = self._restrained(planned, now)
        results = await self._act(planned.plan, self._parts.members, fleet)
        await self._settle(planned, Looked(world=world, decision=decision, now=now, uids={}), results)
        self._follow(fleet, self._parts.members)
        self._parts.vitals.durations_s["round"] = self._parts.clock.monotonic_s() - started_s

    async def _look_around(self, fleet: Fleet, agenda: Agenda, now: str) -> frozenset[Identity] | None:
        """Bring observations and the decision up to date; the identities that have to be settled, None: all."""
        if agenda.everything:
            await self._reach_all(fleet, now)
        elif agenda.capacity or (agenda.store and self._decision is None and wants_capacity(fleet)):
            # A commit is divided by the room that there is now, not by what was there before the last round.
            await self._observe(fleet, now)
        changed: set[Identity] = set()
        if self._decision is None:
            self._decision = await self._decide(fleet, now)
            before, after = self._signatures, await asyncio.to_thread(signatures, self._decision)
            changed = {found for found in after.keys() | before.keys() if after.get(found) != before.get(found)}
            self._signatures = after
        return None if agenda.everything else frozenset(agenda.identities | self._confirming | changed)

    async def _read_store(self, agenda: Agenda) -> None:
        vitals, clock = self._parts.vitals, self._parts.clock
        self._beat("reading the store")
        try:
            snapshot = await self._parts.source.read()
        except StoreError as error:
            if vitals.source_error != str(error):
                log.error("the store cannot be read; the last good revision stays in force",
                          extra={"event": "SourceFailed", "error": str(error)})  # fmt: skip
            vitals.source_error = str(error)
            record_source_error(self._parts.journal, str(error))
            return
        if vitals.source_error:
            record_source_error(self._parts.journal, "")
        vitals.source_error, vitals.source_read_at = "", clock.now()
        self._say_how_it_is_followed()
        if snapshot is None:
            return
        fleet = await asyncio.to_thread(self._parts.store.parse, snapshot)
        if self._is_refused(fleet):
            return
        log.info("the store advanced", extra={"event": "SourceAdvanced", "rev": fleet.revision})
        before, self._fleet, self._decision = self._fleet, fleet, None
        vitals.revision, vitals.is_ready = fleet.revision, True
        self._parts.agent.commit = fleet.revision
        self._parts.journal.record_good_blobs(self._parts.store.good_blobs)
        if before is None or before.clusters != fleet.clusters or before.settings != fleet.settings:
            self._parts.members.update(self._parts.configs_of(fleet))
            self._absent.keep(frozenset(fleet.clusters))
            agenda.mark_everything()
        elif (before.is_complete, before.frozen) != (fleet.is_complete, fleet.frozen):
            # Copies that no decision speaks of were frozen, or are from now on.
            agenda.mark_everything()

    def _say_how_it_is_followed(self) -> None:
        """The branch is known after the first read only; a note (polling instead of events) is logged once."""
        source = self._parts.source
        self._parts.vitals.source = source.description
        if source.note and source.note != self._source_note:
            log.warning(source.note, extra={"event": "SourceNote"})
        self._source_note = source.note

    def _is_refused(self, fleet: Fleet) -> bool:
        """A store that names no fleet, or another one, never takes the place of the one in force."""
        bound, settings = self._parts.journal.fleet, fleet.settings
        if settings.name and bound in ("", settings.name, *settings.previous_names):
            if bound != settings.name:
                self._parts.journal.record_fleet(settings.name)
            self._parts.vitals.fleet = settings.name
            return False
        text = (
            f"the store names fleet {settings.name!r} and the journal belongs to {bound!r}; the last good revision "
            "stays in force"
        )
        if self._parts.vitals.source_error != text:
            log.error(text, extra={"event": "SourceFailed", "rev": fleet.revision})
        self._parts.vitals.source_error = text
        record_source_error(self._parts.journal, text)
        return True

    async def _reach_all(self, fleet: Fleet, now: str) -> None:
        self._beat("reaching the clusters")
        self._reachable, uids = await reach(fleet, self._parts.members, self._known.cluster_uids)
        for name, uid in sorted(uids.items()):
            if name not in self._known.cluster_uids:
                self._parts.journal.record_cluster(name, uid)
        self._known = replace(self._known, cluster_uids={**uids, **self._known.cluster_uids})
        if await recover(self._parts.journal, self._reachable, fleet):
            self._known = remembered(self._parts.journal)
        self._next_resync_s = self._parts.clock.monotonic_s() + fleet.settings.resync_s
        await self._observe(fleet, now)

    async def _observe(self, fleet: Fleet, now: str) -> None:
        """Served kinds and, where it decides anything, free capacity; a decision made on other values is void."""
        seen = await observe_members(fleet, self._reachable, self._known, now)
        if is_news(seen, self._observations):
            self._decision = None
        self._observations = seen
        has_capacity = any(cluster.nodes is not None for cluster in seen.clusters.values())
        pause_s = _CAPACITY_S if has_capacity else float("inf")
        self._next_capacity_s = self._parts.clock.monotonic_s() + pause_s

    async def _decide(self, fleet: Fleet, now: str) -> Decision:
        self._beat("deciding")
        remembered_now = self._known.observations
        self._observations = replace(
            self._observations, previous=remembered_now.previous, constraints=remembered_now.constraints
        )
        copies = copies_in(self._known.ledger)
        return await asyncio.to_thread(decide, fleet, self._observations, now, copies=copies)

    def _restrained(self, planned: Round, now: str) -> Round:
        """The plan as far as suspensions, `observe` and fights allow it."""
        suspensions = in_force(self._parts.journal.suspensions(), now)
        self._parts.vitals.suspended = tuple(found.scope for found in suspensions)
        plan = suspend(planned.plan, suspensions)
        if planned.decision.fleet.settings.observe_only:
            plan = replace(plan, waves=())
        now_s = self._parts.clock.monotonic_s()
        fought = {
            index
            for index, change in enumerate(plan.changes)
            if self._fights.pause_left_s(change.cluster, change.identity, now_s) > 0 and change.cause is Cause.DRIFT
        }
        waves = tuple(tuple(index for index in wave if index not in fought) for wave in plan.waves)
        return replace(planned, plan=replace(plan, waves=tuple(wave for wave in waves if wave)))

    async def _act(self, plan: Plan, members: Members, fleet: Fleet) -> tuple[Result, ...]:
        if not plan.waves:
            return ()
        self._beat(f"making {sum(map(len, plan.waves))} changes")
        clusters = {plan.changes[index].cluster for wave in plan.waves for index in wave}
        now_s = self._parts.clock.monotonic_s()
        due = sorted(name for name in clusters if now_s - self._held_s.get(name, -_HOLD_S) >= _HOLD_S)
        failed = await hold([members[cluster] for cluster in due], fleet.settings.name, self._parts.journal)
        self._held_s |= {name: now_s for name in due if name not in failed}
        waves = tuple(tuple(i for i in wave if plan.changes[i].cluster not in failed) for wave in plan.waves)
        acting = Acting(
            members=members,
            journal=self._parts.journal,
            fleet=fleet.settings.name,
            revision=fleet.revision,
            tell=self._told,
        )
        return await act(replace(plan, waves=tuple(wave for wave in waves if wave)), acting)

    def _told(self, result: Result) -> None:
        change, vitals = result.change, self._parts.vitals
        self._beat("making changes")
        vitals.changes[change.cluster, str(change.action), "failed" if result.error else "done"] += 1
        extra = {"event": "ApplyFailed" if result.error else "Applied", "cluster": change.cluster,
                 "obj": str(change.identity), "op": str(change.action), "cause": str(change.cause)}  # fmt: skip
        if result.error:
            log.warning("change failed", extra={**extra, "error": result.error})
        else:
            log.info("change made", extra=extra)

    async def _settle(self, planned: Round, looked: Looked, results: tuple[Result, ...]) -> None:
        """Record the round, and remember what the next one must look at again."""
        self._beat("recording")
        source = self._parts.source.description
        remember(self._parts.journal, planned, looked, results, source=source)
        before, self._known = self._known, remembered(self._parts.journal)
        self._believe(planned, looked.world, results)
        now_s = self._parts.clock.monotonic_s()
        for name, member in looked.world.members.items():
            if isinstance(member, Read):
                self._absent.was_read(name)
            elif name in self._parts.members:
                self._absent.was_not_read(name, now_s)
                # Until it answers, no other cluster waits for it.
                self._reachable = {**self._reachable, name: member.why}
        if self._known.has_history and not before.has_history:
            self._agenda.mark_everything()
        left = _left(before, self._known, looked.world.only)
        if left:
            # What followed an owner's old copy stays for as long as that does, which a new decision finds out.
            self._decision = None
            self._agenda.mark(*left)
        unmade = tuple(self._unmade(planned, results))
        concerned = self._concerned(planned, looked.world)
        for identity in concerned:
            self._waiting.discard(identity)
            self._confirming.discard(identity)
            if not any(result.change.identity == identity and result.error for result in (*results, *unmade)):
                self._retries.pop(identity, None)
        for change in planned.plan.changes:
            if change.held is not None:
                (self._confirming if is_held_by_guard(change) else self._waiting).add(change.identity)
        for result in (*results, *unmade):
            self._after(result, now_s)
        self._picture = merged(self._picture, planned, results, looked.world.only)
        source = self._parts.source.description
        fault = self._parts.vitals.source_error
        record_picture(self._parts.journal, self._picture, looked, results, source=source, source_error=fault)
        show(self._parts.vitals, self._picture, looked)

    def _concerned(self, planned: Round, world: World) -> Iterable[Identity]:
        if world.only is not None:
            return world.only
        return {*planned.decision.bindings, *self._waiting, *self._confirming, *self._retries}

    def _unmade(self, planned: Round, results: tuple[Result, ...]) -> Iterable[Result]:
        """Changes that were due and that nobody began: their cluster could not be held, or a fight is on."""
        if planned.decision.fleet.settings.observe_only:
            return
        begun = {(result.change.cluster, result.change.identity) for result in results}
        for change in planned.plan.changes:
            if change.held is None and (change.cluster, change.identity) not in begun:
                yield Result(change=change, error="not begun")

    def _after(self, result: Result, now_s: float) -> None:
        change = result.change
        if result.error:
            _, pause_s = self._retries.get(change.identity, (0.0, _RETRY_MIN_S / 2))
            pause_s = min(_RETRY_MAX_S, pause_s * 2)
            self._retries[change.identity] = (now_s + pause_s, pause_s)
        elif change.cause is Cause.DRIFT:
            self._parts.vitals.drifts[change.cluster] += 1
            if self._fights.healed(change.cluster, change.identity, now_s):
                managers = sorted({found.owner.manager for found in change.fields if found.owner is not None})
                log.warning("somebody keeps undoing our changes; backing off",
                            extra={"event": "FightDetected", "cluster": change.cluster,
                                   "obj": str(change.identity), "managers": managers})  # fmt: skip
        if self._fights.pause_left_s(change.cluster, change.identity, now_s) > 0:
            pause_s = self._fights.pause_left_s(change.cluster, change.identity, now_s)
            self._retries[change.identity] = (now_s + pause_s, pause_s)

    def _believe(self, planned: Round, world: World, results: tuple[Result, ...]) -> None:
        """What was read and needs no change is as wanted; so is what was just written, in the version acknowledged."""
        due = {(change.cluster, change.identity) for change in planned.plan.changes}
        for name, member in world.members.items():
            if isinstance(member, NotRead):
                self._beliefs.forget(name)
            elif isinstance(member, Read):
                for identity, live in member.objects.items():
                    if (name, identity) not in due:
                        self._beliefs.confirm(name, identity, live.uid, live.resource_version)
        for result in results:
            change = result.change
            if result.error or change.action in (Action.DELETE, Action.RELEASE):
                self._beliefs.doubt(change.cluster, change.identity)
            else:
                self._beliefs.confirm(change.cluster, change.identity, result.uid, result.resource_version)

    def _follow(self, fleet: Fleet, members: Members) -> None:
        """Watch the kinds that matter, in every cluster that answers."""
        kinds = frozenset(template.gvk for template in fleet.templates.values())
        names = ",".join(name for name in (fleet.settings.name, *fleet.settings.previous_names) if name)
        for name, member in members.items():
            applied = frozenset(row.gvk for row in self._known.ledger.get(name, {}).values())
            self._watches.keep(member, kinds | applied, f"{FLEET_LABEL} in ({names})")

    def _beat(self, phase: str) -> None:
        self._parts.vitals.phase = phase
        self._parts.vitals.heartbeat_s = self._parts.clock.monotonic_s()


def _left(before: Known, after: Known, only: frozenset[Identity] | None) -> set[Identity]:
    """What had a copy before that it has no longer, among `only` (None: all)."""
    left: set[Identity] = set()
    for cluster, rows in before.ledger.items():
        now = after.ledger.get(cluster, {})
        left.update(identity for identity in (rows if only is None else only & rows.keys()) if identity not in now)
    return left
