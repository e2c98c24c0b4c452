"""The daemon's state for others: written by the control loop, read by health endpoints, metrics and systemd.

Pages, metrics, the status line of systemd and notifications read one frozen snapshot without locks, so that all agree.
Distributions of seconds are cheap enough to be kept of every request: one bisection and two additions each.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct, field

from reconciler.api.clusters import Observations
from reconciler.api.problem import Problem
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.kube.client import MemberCluster
from reconciler.notify.post import Deliveries
from reconciler.report.status.remedies import NO_ROOM
from reconciler.report.status.state_document import StateOfFleet
from reconciler.state import ClusterState, RevisionStep, step_of


class StatusSnapshot(Struct, frozen=True, kw_only=True):
    """The state of the fleet after a round. `picture`: None before the first one, and while another process leads.

    `since`: the time since which the fleet is in step, or is not. `servers`: addresses of the clusters. `held`: changes
    that wait, by kind of reason: guard, move, suspended, other. `step`: the progress of the active revision.
    `revision_active_since`: empty: unknown. `is_in_step_reported`: all was in step once since then. Times: RFC 3339.
    """

    picture: StateOfFleet | None = None
    observations: Observations = field(default_factory=Observations)
    since: str = ""
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterState] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    step: RevisionStep | None = None
    revision_active_since: str = ""
    is_in_step_reported: bool = False
    last_round_at: str = ""
    suspended: tuple[str, ...] = ()
    """Scopes that are suspended now."""
    rollouts: tuple[RolloutProgress, ...] = ()
    """The state of each Rollout of the store."""


class StatusStore:
    """The published snapshot. Everything is called from the task of the event loop that publishes."""

    def __init__(self) -> None:
        self.snapshot = StatusSnapshot()
        self.moment = 0
        """It grows whenever something that is shown becomes another."""
        self._changed = asyncio.Event()

    def publish(self, snapshot: StatusSnapshot) -> None:
        """Show this from now on, and wake who waits for it."""
        self.snapshot = snapshot
        self.wake()

    def wake(self) -> None:
        """Something beside the snapshot is otherwise: whether the store can be read."""
        self.moment += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def changed(self, moment: int) -> None:
        """Return once the moment is another than this one."""
        while self.moment == moment:
            await self._changed.wait()


def snapshot_of(picture: StateOfFleet) -> StatusSnapshot:
    """Return the snapshot of a picture."""
    state, plan = picture.state, picture.round.plan
    # Zeros too, so that an alert has a series before the first one.
    held = dict.fromkeys(("guard", "move", "suspended", "other"), 0)
    for hold in (change.hold for change in plan.changes if change.hold is not None):
        held[str(hold.by) if str(hold.by) in held else "other"] += 1
    return StatusSnapshot(
        picture=picture,
        clusters=state.clusters,
        problems=plan.problems,
        held=held,
        step=step_of(state),
        rollouts=picture.rollouts,
    )


log = logging.getLogger("reconciler")


class RoundPhase(Enum):
    """The phases of rounds. `IDLE` is no work: nothing is due, or others lead."""

    IDLE = ("", "idle")
    READ_STORE = ("store", "reading the store")
    PARSE = ("parse", "parsing")
    DECIDE = ("decide", "deciding")
    MEET = ("meet", "meeting the clusters")
    OBSERVE = ("observe", "observing the clusters")
    TICK = ("tick", "looking for replicas without a node")
    READ = ("read", "reading the clusters")
    PLAN = ("plan", "planning")
    DRY_RUN = ("dry-run", "asking for dry runs")
    WRITE = ("write", "making changes")
    RECORD = ("record", "recording")

    def __init__(self, label: str, text: str) -> None:
        """`label`: in metrics. `text`: as it is shown to people."""
        self.label = label
        self.text = text


class Distribution:
    """The count of values up to each bound, and the sum of all. The last count is of values above all bounds."""

    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0


class Histograms:
    """One distribution for each combination of labels that was seen."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        """`bounds_s`: the upper bounds of the buckets, in ascending order, without the infinite one."""
        self.bounds_s = bounds_s
        self.distributions: dict[tuple[str, ...], Distribution] = {}

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        """Count a value."""
        distribution = self.distributions.get(labels)
        if distribution is None:
            distribution = self.distributions[labels] = Distribution(len(self.bounds_s))
        distribution.counts[bisect_left(self.bounds_s, seconds)] += 1
        distribution.sum += seconds

    def keep(self, clusters: frozenset[str]) -> None:
        """Drop values with another first label: a cluster that is gone."""
        for labels in [labels for labels in self.distributions if labels[0] not in clusters]:
            del self.distributions[labels]

    def buckets(self, labels: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, with how many values were at most that."""
        so_far = 0
        bounds = (*map(str, self.bounds_s), "+Inf")
        for bound, count in zip(bounds, self.distributions[labels].counts, strict=True):
            so_far += count
            yield bound, so_far


class Phases:
    """The duration of each phase of rounds, from its first progress report to that of another phase."""

    def __init__(self, histograms: Histograms) -> None:
        self.histograms = histograms
        self._phase = RoundPhase.IDLE
        self._begun_s = 0.0

    def begin(self, phase: RoundPhase, now_s: float) -> None:
        """Begin a phase, or go on with it."""
        if phase is self._phase:
            return
        if self._phase is not RoundPhase.IDLE:
            self.histograms.observe((self._phase.label,), now_s - self._begun_s)
        self._phase, self._begun_s = phase, now_s


class HasMembers(Protocol):
    """A control loop."""

    @property
    def members(self) -> Mapping[str, MemberCluster]:
        """The clusters as it reaches them now."""
        ...


class Vitals(Struct, kw_only=True):
    """The state of the daemon. `heartbeat_s`: monotonic time of the control loop's last sign of progress.

    `allowance_s`: additional time for the next one. `phase`: the present work (`listing 2/3 clusters`). `changes`:
    counts by (cluster, action, result). `durations_s`: of each phase of the last round. `source_error`: of reading the
    store last; empty: none. `source_read_at`: the time of its last reading.
    """

    started_at: str = ""
    fleet: str = ""
    source: str = ""
    revision: str = ""
    source_error: str = ""
    source_read_at: str = ""
    journal_error: str = ""
    """The error for which the journal cannot be written, and nothing is applied; empty: it can be."""
    phase: str = "starting"
    is_ready: bool = False
    leads: bool = True
    """True: this process leads its fleet; False: it stands by."""
    is_reloading: bool = False
    """A reload was asked for, and no round has ended that knows of it."""
    heartbeat_s: float = 0.0
    allowance_s: float = 0.0
    rounds: int = 0
    durations_s: dict[str, float] = field(default_factory=dict)
    changes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    drifts: Counter[str] = field(default_factory=Counter)
    """Hand edits that were found, by cluster."""
    fights: Counter[str] = field(default_factory=Counter)
    """Fights that were found, by cluster."""
    short_watches: Counter[str] = field(default_factory=Counter)
    """Watches that ended before their time, by cluster."""
    in_step_s: Histograms = field(
        default_factory=lambda: Histograms(bounds_s=(1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0))
    )
    """Seconds from when a revision came into force until all was in step."""
    phases: Phases = field(
        default_factory=lambda: Phases(
            Histograms(bounds_s=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0))
        )
    )
    """Seconds of each phase of rounds."""
    requests: Histograms = field(default_factory=lambda: Histograms(bounds_s=(0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0)))
    """Seconds until an answer began, by cluster, verb and class of the status."""
    webhooks: dict[str, Deliveries] = field(default_factory=dict)
    """Deliveries by the name of the receiver."""
    commit_status: Deliveries | None = None
    """The same of the statuses of commits at a forge; None: none are wanted."""
    loop: HasMembers | None = None
    """The control loop that runs now; None: none does."""
    commit_url: str = ""
    """The address of a commit at the forge, with `{revision}`; empty: not known."""
    file_url: str = ""
    """The address of a line of a file there, with `{revision}`, `{path}` and `{line}`."""
    status: StatusStore = field(default_factory=StatusStore)
    """The published state of the fleet."""

    @property
    def members(self) -> Mapping[str, MemberCluster]:
        """Return the clusters as the control loop reaches them now; none while it does not run."""
        return self.loop.members if self.loop is not None else {}

    @property
    def snapshot(self) -> StatusSnapshot:
        """Return the published state of the fleet."""
        return self.status.snapshot

    def stand_by(self) -> None:
        """Drop all reports: another process leads, and this one's observations are outdated."""
        self.leads = False
        self.status.publish(StatusSnapshot())

    def record_journal_error(self, error: str) -> None:
        """Record and log the error for which the journal cannot be written; empty: it can be, again."""
        if error:
            extra = {"event": "JournalFull", "error": error, "todo": NO_ROOM}
            log.error("nothing is applied: the journal cannot be written", extra=extra)
        else:
            log.info("the disk of the journal has room again", extra={"event": "JournalHasRoom"})
        self.journal_error = error
        self.status.wake()

    def answered(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """Count a request. `code`: the class of its status; `seconds`: until the answer began."""
        self.requests.observe((cluster, verb, code), seconds)


async def log_progress(vitals: Vitals, clock: Clock) -> None:
    """Log every few seconds how far the first round is, until it is over."""
    await clock.sleep(timing.CHECK_S)
    while not vitals.rounds:
        log.info("starting: %s", vitals.phase, extra={"event": "Starting"})
        await clock.sleep(timing.CHECK_S)
