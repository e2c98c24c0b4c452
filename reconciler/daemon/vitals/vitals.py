"""What the daemon knows about itself: written by the control loop, read by health endpoints, metrics and systemd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.daemon.vitals.board import Board
from reconciler.model.problem import Problem


class ClusterVitals(Struct, kw_only=True):
    """One member. `objects`: how many of ours are in each state of sync, `health`: how many fare how. Each counts once.

    `is_left`: the store has no document of it. Times: RFC 3339, empty: never.
    """

    name: str
    is_up: bool = False
    why: str = "not read yet"
    is_left: bool = False
    objects: Mapping[str, int] = field(default_factory=dict)
    health: Mapping[str, int] = field(default_factory=dict)
    last_success: str = ""


class Vitals(Struct, kw_only=True):
    """The state of the daemon. `heartbeat_s` is the monotonic time of the control loop's last sign of progress.

    `allowance_s` is how much longer than usual the next one may take, because much is worked on at once.

    `phase` says what is being done (`loading`, `listing 2/3 clusters`, `idle`), `changes` counts changes made by
    (cluster, action, result), `durations_s` the seconds of each phase of the last round, `source_error` why the store
    could not be read the last time (empty: it could), `source_read_at` when it was last read.
    """

    started_at: str = ""
    fleet: str = ""
    source: str = ""
    revision: str = ""
    source_error: str = ""
    source_read_at: str = ""
    phase: str = "starting"
    is_ready: bool = False
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
    board: Board = field(default_factory=Board)
    """What is shown of the last round to whoever looks."""

    def watch_ended_early(self, cluster: str) -> None:
        """Count it."""
        self.short_watches[cluster] += 1
