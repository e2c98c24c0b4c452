"""The daemon's state for others: written by the control loop, read by health endpoints, metrics and systemd."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.adapters.clock import Clock
from reconciler.adapters.notify.deliveries import Deliveries
from reconciler.daemon import timing
from reconciler.daemon.vitals.board import Board
from reconciler.daemon.vitals.histograms import Histograms, Phases
from reconciler.model.problem import Problem
from reconciler.model.rollouts.progress import Progress
from reconciler.stages.state import Step

log = logging.getLogger("reconciler")


class ClusterVitals(Struct, kw_only=True):
    """One member. `objects`: how many of ours are in each state of sync, `health`: how many fare how. Each counts once.

    `kinds_unread`: kinds that cannot be read there, though it answers.

    `is_left`: the store has no document of it. Times: RFC 3339, empty: never.
    """

    name: str
    is_up: bool = False
    why: str = "not read yet"
    is_doubted: bool = False
    """A watch or a poll of it failed, and no round has asked it since whether it answers."""
    is_left: bool = False
    objects: Mapping[str, int] = field(default_factory=dict)
    health: Mapping[str, int] = field(default_factory=dict)
    kinds_unread: int = 0
    last_success: str = ""


class Vitals(Struct, kw_only=True):
    """The state of the daemon. `heartbeat_s` is the monotonic time of the control loop's last sign of progress.

    `allowance_s`: additional time for the next one, because much is processed at once.

    `phase`: the present work (`loading`, `listing 2/3 clusters`, `idle`), `changes`: counts of made changes by
    (cluster, action, result), `durations_s`: the seconds of each phase of the last round, `source_error`: the last
    error of reading the store (empty: none), `source_read_at`: the time of its last reading.
    """

    started_at: str = ""
    fleet: str = ""
    source: str = ""
    revision: str = ""
    source_error: str = ""
    source_read_at: str = ""
    phase: str = "starting"
    is_ready: bool = False
    leads: bool = True
    """True: this process leads its fleet; False: it stands by."""
    is_reloading: bool = False
    """A reload was asked for, and no round has ended that knows of it."""
    journal_error: str = ""
    heartbeat_s: float = 0.0
    allowance_s: float = 0.0
    rounds: int = 0
    last_round_at: str = ""
    durations_s: dict[str, float] = field(default_factory=dict)
    clusters: dict[str, ClusterVitals] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    held: dict[str, int] = field(default_factory=dict)
    """Changes that wait, by kind of reason: guard, move, suspended, other."""
    changes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    drifts: Counter[str] = field(default_factory=Counter)
    """Hand edits that were found, by cluster."""
    fights: Counter[str] = field(default_factory=Counter)
    """Fights that were found, by cluster."""
    short_watches: Counter[str] = field(default_factory=Counter)
    """Watches that ended before their time, by cluster."""
    suspended: tuple[str, ...] = ()
    """Scopes that are suspended now."""
    rollouts: tuple[Progress, ...] = ()
    """The state of each Rollout of the store."""
    step: Step | None = None
    """The progress of the active revision."""
    revision_seen_at: str = ""
    """The time when it became active, as RFC 3339; empty: unknown."""
    is_told_in_step: bool = False
    """True if all was in step once since it became active."""
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
    board: Board = field(default_factory=Board)
    """The published state of the last round."""

    def stand_by(self) -> None:
        """Drop all reports: another process leads, and this one's observations are outdated."""
        self.leads, self.last_round_at, self.step = False, "", None
        self.clusters, self.problems, self.held, self.rollouts, self.suspended = {}, (), {}, (), ()
        self.board.shown = None
        self.board.stir()

    def watch_ended_early(self, cluster: str) -> None:
        """Count it."""
        self.short_watches[cluster] += 1


async def tell_progress(vitals: Vitals, clock: Clock) -> None:
    """Log every few seconds how far the first round is, until it is over."""
    await clock.sleep(timing.CHECK_S)
    while not vitals.rounds:
        log.info("starting: %s", vitals.phase, extra={"event": "Starting"})
        await clock.sleep(timing.CHECK_S)
