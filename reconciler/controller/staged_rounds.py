"""Rollouts and windows in the rounds of the service: their evaluation, and the objects to enqueue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from msgspec.structs import replace

from reconciler.api.ledger import Event, EventKind, JournalSnapshot
from reconciler.api.problem import Problem
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox, PendingWork
from reconciler.controller.loop_state import LoopParts, State
from reconciler.controller.reader import Reader
from reconciler.controller.rollouts.rollout_controller import RolloutController
from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce, RolloutInputs, away_in
from reconciler.controller.round.episodes import Episodes
from reconciler.controller.store_follower import StoreFollower
from reconciler.observations import moment_of, wait_s
from reconciler.planner import former_windows
from reconciler.policy import Closed, closed_clusters
from reconciler.rollouts import Begun, changed_by_staging, rollout_events
from reconciler.scheduler import Schedule

_LASTING = (EventKind.ROLLOUT_PAUSED, EventKind.APPROVAL_AWAITED, EventKind.PINNED)


class StagedRounds:
    """Stages the schedule of each round, and keeps the last result."""

    def __init__(self, parts: LoopParts, follower: StoreFollower, inbox: Inbox) -> None:
        self._parts = parts
        self._stager = RolloutController(
            RevisionsInForce(parts.source, follower.at),
            parts.access.clock,
            JournalSnapshot(),  # The journal is read each time.
            (parts.journal, parts.holder.enter),
            within_s=timing.GRACE_S,
            inbox=inbox,
            prometheus=parts.prometheus,
        )
        self._before: Schedule | None = None
        self._closed: Mapping[str, Closed] = {}
        self._opens_s = inf
        self._lasting: set[Begun] | None = None
        """Unfinished steps in history when the process began."""

    @property
    def next_s(self) -> float:
        """Return the time of the next change by time alone, by the monotonic clock."""
        return min(self._stager.next_s, self._opens_s)

    def is_due(self, state: State) -> bool:
        """Return whether something can change now: by the clock, or by a new observation."""
        if self._parts.access.clock.monotonic_s() >= self.next_s:
            return True
        return self._stager.is_news(state.reported)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        await self._stager.close()

    async def stage(self, state: State, reader: Reader, work: PendingWork, now: str) -> tuple[State, PendingWork]:
        """Return the state with the staged schedule, and the work with what this adds to it.

        That are objects that it renders differently, and clusters in which a window opened or closed.

        Raises FleetHeld: another journal holds the fleet.
        """
        decided = reader.decided
        fleet = decided.fleet
        former = former_windows(state.known.losses.guards, fleet)
        closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment_of(now), former)
        turned = {name for name in {*closed, *self._closed} if closed.get(name) != self._closed.get(name)}
        self._closed = closed
        opens_in_s = wait_s((window.until for window in closed.values()), now)
        self._opens_s = self._parts.access.clock.monotonic_s() + opens_in_s + timing.SURELY_OVER_S
        look = RolloutInputs(
            reachable=state.reachable,
            journal=state.known,
            copies=reader.copies,
            away=away_in(state.reachable, state.held_elsewhere, state.observations.closed),
            closed={name: window.until for name, window in self._closed.items()},
            reported=state.reported,
        )
        schedule = await self._stager.stage(decided, look, now)
        journal, known = self._parts.journal, {each.rollout: each for each in state.rollouts}
        if self._lasting is None:
            open_now = Episodes(journal, _LASTING)
            self._lasting = {(kind, subject) for kind in _LASTING for subject in open_now.open(kind)}
        number, events = journal.complete_rounds(), list[Event]()
        for each in self._stager.progress:
            about = (f"rollout {each.rollout}/", f"rollout {each.rollout} @ ")
            begun_before = [begun for begun in self._lasting if begun[1].startswith(about)]
            events += rollout_events(known.get(each.rollout), each, now, number=number, begun=begun_before)
        if events:
            journal.record_events(events)
        changed = changed_by_staging(self._before, schedule)
        self._before = schedule
        # A commit that changes a Rollout alone changes no object, and a round over none would not tell its problems.
        is_news = _problems(self._stager.progress) != _problems(state.rollouts)
        identities, clusters = work.identities.union(changed), work.clusters | (turned & fleet.clusters.keys())
        work = replace(work, everything=work.everything or is_news, identities=identities, clusters=clusters)
        return replace(state, schedule=schedule, rollouts=self._stager.progress), work


def _problems(rollouts: Iterable[RolloutProgress]) -> set[Problem]:
    return {problem for each in rollouts for problem in each.problems}
