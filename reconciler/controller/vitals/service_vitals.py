"""The daemon's state for others: written by the control loop, read by health endpoints, metrics and systemd.

The picture that a round leaves, as vital signs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from reconciler.api.plan import Change
from reconciler.api.problem import Problem
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.round.episodes import Steps
from reconciler.controller.round.program_faults import log_faults
from reconciler.controller.vitals.board import Histograms, Phases, StatusStore
from reconciler.notify.post import Deliveries
from reconciler.planner import Round
from reconciler.state import ClusterState, FleetState, RevisionStep

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
    rollouts: tuple[RolloutProgress, ...] = ()
    """The state of each Rollout of the store."""
    step: RevisionStep | None = None
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
    board: StatusStore = field(default_factory=StatusStore)
    """The published state of the last round."""

    def stand_by(self) -> None:
        """Drop all reports: another process leads, and this one's observations are outdated."""
        self.leads, self.last_round_at, self.step = False, "", None
        self.clusters, self.problems, self.held, self.rollouts, self.suspended = {}, (), {}, (), ()
        self.board.shown = None
        self.board.wake()

    def watch_ended_early(self, cluster: str) -> None:
        """Count it."""
        self.short_watches[cluster] += 1


async def tell_progress(vitals: Vitals, clock: Clock) -> None:
    """Log every few seconds how far the first round is, until it is over."""
    await clock.sleep(timing.CHECK_S)
    while not vitals.rounds:
        log.info("starting: %s", vitals.phase, extra={"event": "Starting"})
        await clock.sleep(timing.CHECK_S)


def show(vitals: Vitals, picture: Round, state: FleetState, heard: Collection[str]) -> None:
    """Bring the vital signs up to date. `heard`: the clusters that were asked now."""
    log_faults(vitals.problems, picture.plan.problems)
    vitals.problems = picture.plan.problems
    vitals.held = _held(picture.plan.changes)
    for name in vitals.clusters.keys() - state.clusters.keys():
        del vitals.clusters[name]
    for name, found in state.clusters.items():
        vital = vitals.clusters.setdefault(name, ClusterVitals(name=name))
        vital.is_left = found.is_left
        if name in heard or found.why_away is not None or found.is_left:
            _show_answer(vital, found)
        vital.kinds_unread = len(state.unread_kinds(name))
        vital.last_success = found.last_contact
        vital.objects = {str(lag): count for lag, count in found.syncs.items()}
        vital.health = {str(word): count for word, count in found.healths.items()}


def show_step(vitals: Vitals, step: RevisionStep, steps: Steps) -> None:
    """Bring up to date how far the revision in force has come. How long it took counts once."""
    vitals.step, vitals.revision_seen_at, vitals.is_told_in_step = step, steps.seen_at, steps.is_told
    if steps.fresh_s is not None:
        vitals.in_step_s.observe((), steps.fresh_s)


def _held(changes: Iterable[Change]) -> dict[str, int]:
    """Return the number of held changes by holder; zeros too, so that an alert has a series before the first one."""
    found = dict.fromkeys(("guard", "move", "suspended", "other"), 0)
    for change in changes:
        if change.hold is not None:
            by = str(change.hold.by)
            found[by if by in found else "other"] += 1
    return found


def _show_answer(vital: ClusterVitals, found: ClusterState) -> None:
    vital.is_doubted = False
    if found.is_left:
        vital.is_up, vital.why = False, "the store has no Cluster document for it"
    elif found.why_away is not None:
        vital.is_up, vital.why = False, found.why_away
    else:
        vital.is_up, vital.why = True, ""
