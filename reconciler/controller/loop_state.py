"""Parts and state of the control loop; steps return a new state, only the loop stores it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Observations
from reconciler.api.fleet import Fleet, HighAvailability
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.containment import INTERNAL_ERROR, try_call
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable
from reconciler.controller.inbox import Inbox
from reconciler.controller.once.planning import Access, configs_of
from reconciler.controller.rollouts.requests import Prometheus
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.round_log import RoundLog
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import RoundPhase, Vitals
from reconciler.documents import Schema
from reconciler.errors import ANOTHER_CLUSTER, ConfigurationError
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.sqlite_journal import Journal
from reconciler.kinds.registry import Registry
from reconciler.kube.connection.kubeconfig import MemberConfig, stamp_of
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.observations import Available, CopyAtRest, NotAvailable, availability_of, with_copy_at_rest
from reconciler.planner import Round
from reconciler.scheduler import RUNS_ONCE, Schedule
from reconciler.state import FleetState
from reconciler.store.directory import StoreSource
from reconciler.store.source import NO_COMMITS, Commits


class LoopParts(Struct, frozen=True, kw_only=True):
    """All of it is open."""

    source: StoreSource
    store: StoreInForce
    journal: Journal
    holder: OwnershipLock
    opened: MemberClusters
    """The session, with the clusters that the loop begins with; those of now are in its state."""
    access: Access
    agent: UserAgent
    vitals: Vitals
    left_alone: Mapping[str, ConfigurationError] = field(default_factory=dict)
    """By name why clusters are not reached for now."""
    commits: Commits = NO_COMMITS
    """Those of the store."""
    prometheus: Prometheus | None = None
    """Answers metrics of gates; None: none was named."""
    ha: HighAvailability | None = None
    """The Lease by which this process leads; None: it is alone."""
    round_log: RoundLog = RoundLog()

    def configs_of(self, fleet: Fleet) -> Mapping[str, MemberConfig | ConfigurationError]:
        """Return how the clusters that this process applies to are reached, or why they are not; as `configs_of`."""
        configs = configs_of(self.access.clusters.cut(fleet), self.access)
        return {name: self.left_alone.get(name, config) for name, config in configs.items()}

    def access_stamp(self) -> Hashable:
        """Return another value once the files were written that say how clusters are reached."""
        return stamp_of(self.access.kubeconfig) if self.access.profiles is None else None

    def is_other_part(self, fleet: Fleet) -> bool:
        """Return whether the fleet has another Lease than this process leads by: its loop has to end."""
        wanted, present = (ha and (ha.cluster, ha.lease_duration_s) for ha in (fleet.settings.ha, self.ha))
        return self.access.clusters.is_whole and wanted != present

    def follow_keys(self, inbox: Inbox) -> None:
        """Have objects looked at, in the loop that runs now, that could be decrypted only after they were asked for."""
        running = asyncio.get_running_loop()

        def keys_arrived(identities: Collection[Identity]) -> None:
            # It comes from another thread, perhaps when nobody runs any more.
            with contextlib.suppress(RuntimeError):
                running.call_soon_threadsafe(inbox.changed, identities)

        if self.access.keys is not None:
            self.access.keys.listen(keys_arrived)

    def counted(self, phase: RoundPhase, items: int, total: int) -> Callable[[], None]:
        """Begin a phase in which each call is a sign of progress that one more of `total` is done."""
        self.beat(phase, items)
        count = itertools.count(1)

        def progress() -> None:
            self.beat(phase, items, f"{phase.text}, {next(count)} of {total}")

        return progress

    def beat(self, phase: RoundPhase, items: int = 0, text: str = "") -> None:
        """Give a sign of progress. `items`: worked on before the next one. `text`: what is shown; empty: the phase."""
        self.vitals.phase = text or phase.text
        self.vitals.allowance_s = items * timing.ITEM_S
        self.vitals.heartbeat_s = now_s = self.access.clock.monotonic_s()
        self.vitals.phases.begin(phase, now_s)


log = logging.getLogger("reconciler")

_UNMET: Final = "it is reached in another way now, and has not said who it is yet"


class State(Struct, frozen=True, kw_only=True):
    """Values of the last round.

    `fleet`: the active store, None before the first reading. `schedule`: None when void. `picture`: the last round over
    everything, updated by later rounds.
    """

    members: MemberClusters
    """The clusters as the kubeconfig in force says that they are reached."""
    access_stamp: Hashable = None
    """Of the files that were read for that."""
    fleet: Fleet | None = None
    schedule: Schedule | None = None
    observations: Observations = field(default_factory=Observations)
    known: JournalSnapshot = field(default_factory=JournalSnapshot)
    reachable: Reachable = field(default_factory=dict)
    held_elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Clusters that a copy of the journal owns, with the remedy."""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    picture: Round | None = None
    reported: FleetState | None = None
    """The last reported state."""
    rollouts: tuple[RolloutProgress, ...] = ()
    """The state of Rollouts."""
    last_round_at: str = ""

    def snapshot(self, fleet: Fleet, interpreters: Registry, now: str) -> FleetSnapshot:
        """Return what a round is computed from, before the objects of the clusters are read."""
        return FleetSnapshot(
            fleet=fleet, interpreters=interpreters, now=now, observations=self.observations, journal=self.known
        )

    @property
    def is_anybody_away(self) -> bool:
        """Return whether a cluster did not answer the last time."""
        return any(isinstance(member, str) for member in self.reachable.values())

    @property
    def replaced(self) -> frozenset[str]:
        """Return the names under which another cluster answers, whose objects and versions are not of that name."""
        return frozenset(name for name, member in self.reachable.items() if member == ANOTHER_CLUSTER)


def reconnected(parts: LoopParts, state: State, fleet: Fleet) -> tuple[State, frozenset[str]]:
    """Return the state with clusters as the kubeconfig says (the same while it is unusable), and changed ones."""
    # Whatever is written while they are read is read again.
    state = replace(state, access_stamp=parts.access_stamp())
    read = try_call(parts.configs_of, fleet)
    if read.value is not None:
        return exchanged(state, read.value)
    is_expected = isinstance(read.fault, ConfigurationError)
    log.error("the kubeconfig cannot be read; the old one stays in force", exc_info=None if is_expected else read.fault,
              extra={"event": "ReloadFailed", "error": str(read.fault) if is_expected else INTERNAL_ERROR})  # fmt: skip
    return state, frozenset()


def exchanged(state: State, configs: Mapping[str, MemberConfig | ConfigurationError]) -> tuple[State, frozenset[str]]:
    """Return the state with clusters so reached, and those with another access: they have to be identified first."""
    before, members = state.members, state.members.reached_by(configs)
    other = frozenset(name for name in {*before, *members} if members.get(name) is not before.get(name))
    unmet = dict.fromkeys(other & state.reachable.keys(), _UNMET)
    return replace(state, members=members, reachable={**state.reachable, **unmet}), other


class Established:
    """Records of copies at rest that became known between two rounds, for the journal. Source: design#moves."""

    def __init__(self) -> None:
        self._resting: dict[tuple[str, Identity], CopyAtRest] = {}

    def note(self, state: State, cluster: str, live: LiveObject) -> None:
        """Record the availability of a synced copy, if known and new."""
        identity, ledger = live.identity, state.known.ledger
        schedule, row = state.schedule, ledger.get(cluster, {}).get(identity)
        binding = schedule.bindings.get(identity) if schedule is not None else None
        if row is None or schedule is None or binding is None or row.uid != live.uid or identity[:2] in RUNS_ONCE:
            return
        replicas = binding.replicas_on(cluster)
        wanted = replicas or 0
        there = {name: rows[identity].replicas for name, rows in ledger.items() if identity in rows}
        # Every copy has to be in its cluster with its number of replicas, and no other may be there.
        if row.established == wanted or there != dict(binding.targets):
            return
        match availability_of(live.body, schedule.interpreters.of(*identity[:2])):
            case Available():
                self._resting[cluster, identity] = CopyAtRest(uid=live.uid, replicas=wanted, is_available=True)
            case NotAvailable() if replicas is not None and row.base != wanted:
                self._resting[cluster, identity] = CopyAtRest(uid=live.uid, replicas=wanted, is_available=False)

    def record(self, state: State, journal: Journal) -> State:
        """Return the state after updating the journal. Copies written or removed since do not count."""
        noted_now, self._resting = self._resting, {}
        if not noted_now:
            return state
        ledger = journal.ledger()
        rows = [
            with_copy_at_rest(row, rest)
            for (cluster, identity), rest in sorted(noted_now.items())
            if (row := ledger.get(cluster, {}).get(identity)) is not None
            and row.uid == rest.uid
            and (row.replicas or 0) == rest.replicas
        ]
        if not rows:
            return state
        journal.record_applied(rows)
        return replace(state, known=replace(state.known, ledger=journal.ledger()))
