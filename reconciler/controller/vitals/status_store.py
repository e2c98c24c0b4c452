"""The status store: one frozen snapshot that the control loop publishes, and that everything else reads without locks.

Pages, metrics, the status line of systemd and notifications read the same snapshot, so that all agree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from reconciler.api.clusters import Observations
from reconciler.api.problem import Problem
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.report.status.state_document import StateOfFleet
from reconciler.state import RevisionStep, step_of


class ClusterVitals(Struct, frozen=True, kw_only=True):
    """One member. `objects`, `health`: the number of ours in each state of sync and health. Times: RFC 3339.

    `is_left`: the store has no document of it. `kinds_unread`: kinds that cannot be read there, though it answers.
    """

    name: str
    is_up: bool = False
    why: str = "not read yet"
    is_left: bool = False
    objects: Mapping[str, int] = field(default_factory=dict)
    health: Mapping[str, int] = field(default_factory=dict)
    kinds_unread: int = 0
    last_success: str = ""


class StatusSnapshot(Struct, frozen=True, kw_only=True):
    """The state of the fleet after a round. `picture`: None before the first one, and while another process leads.

    `since`: the time since which the fleet is in step, or is not. `servers`: addresses of the clusters. `held`: changes
    that wait, by kind of reason: guard, move, suspended, other. `step`: the progress of the active revision.
    `revision_seen_at`: the time when it became active; empty: unknown. `is_told_in_step`: all was in step once since
    then. Times: RFC 3339.
    """

    picture: StateOfFleet | None = None
    observations: Observations = field(default_factory=Observations)
    since: str = ""
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterVitals] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    step: RevisionStep | None = None
    revision_seen_at: str = ""
    is_told_in_step: bool = False
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


def snapshot_of(picture: StateOfFleet, heard: Collection[str], before: StatusSnapshot) -> StatusSnapshot:
    """Return the snapshot of a picture. `heard`: the clusters that were asked now; others answer as before."""
    state, plan = picture.state, picture.round.plan
    # Zeros too, so that an alert has a series before the first one.
    held = dict.fromkeys(("guard", "move", "suspended", "other"), 0)
    for hold in (change.hold for change in plan.changes if change.hold is not None):
        held[str(hold.by) if str(hold.by) in held else "other"] += 1
    clusters = {}
    for name, cluster in state.clusters.items():
        known = before.clusters.get(name, _UNREAD)
        is_asked = name in heard or cluster.why_away is not None
        is_up, why = known.is_up, known.why
        if cluster.is_left:
            is_up, why = False, "the store has no Cluster document for it"
        elif is_asked:
            is_up, why = cluster.why_away is None, cluster.why_away or ""
        clusters[name] = ClusterVitals(
            name=name,
            is_up=is_up,
            why=why,
            is_left=cluster.is_left,
            objects={str(lag): count for lag, count in cluster.syncs.items()},
            health={str(word): count for word, count in cluster.healths.items()},
            kinds_unread=len(state.unread_kinds(name)),
            last_success=cluster.last_contact,
        )
    return StatusSnapshot(
        picture=picture,
        clusters=clusters,
        problems=plan.problems,
        held=held,
        step=step_of(state),
        rollouts=picture.rollouts,
    )


_UNREAD = ClusterVitals(name="")
