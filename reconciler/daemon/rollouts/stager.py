"""Rollouts of one fleet: what is seen is judged, what begins is recorded, and a decision is staged by it.

A revision is written into the ConfigMap of a cluster, then into the journal, and then its first body is written: a
crash between two of these costs nothing. Source: ADR 18.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.observing.members import PROMPT_S, Reachable
from reconciler.daemon.rollouts.applied import StagedDecision
from reconciler.daemon.rollouts.entering import Begun, Entering
from reconciler.daemon.rollouts.kept_records import KeptRecords
from reconciler.daemon.rollouts.look import Look, Writing
from reconciler.daemon.rollouts.lookout import Lookout
from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
from reconciler.engine import Decision
from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Begin, Record
from reconciler.stages.observations import wait_s
from reconciler.stages.rollouts import Selection
from reconciler.stages.staging import Records, Seen, Standing, begun_with, stand
from reconciler.stages.state import FleetState

CHECKED_S = 5.0
"""How often objects are asked for that gates name: nobody watches them."""
NEVER_S = float("inf")
SURELY_OVER_S = 0.1
"""So much later than a time is told it is looked again: clocks tell moments to the second or finer."""


class Stager:
    """Stages one decision after the other. Nothing is recorded where there is nobody to hold the fleet."""

    def __init__(
        self,
        revisions: RevisionsInForce,
        clock: Clock,
        records: Records,
        writing: Writing | None,
        *,
        within_s: float = PROMPT_S,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`records`: as the journal has them. `writing`: where it is recorded; None: nowhere.

        `within_s`: so long a cluster is waited for at once; `wake` is told when one answers later.
        """
        self._revisions = revisions
        self._clock = clock
        self._kept = KeptRecords(writing[0] if writing is not None else None, records)
        self._entering = Entering(writing[1], clock, within_s, wake) if writing is not None else None
        self._lookout = Lookout()
        self._staged = StagedDecision()
        self._next_s = NEVER_S
        self.progress: tuple[Progress, ...] = ()

    @property
    def next_s(self) -> float:
        """When something can change by itself, by the monotonic clock."""
        return min(self._next_s, self._entering.next_s if self._entering is not None else NEVER_S)

    def is_news(self, shown: FleetState | None) -> bool:
        """Whether what is seen of the clusters is otherwise than when it was judged last."""
        if not self.progress:
            return False
        if self._entering is not None and self._entering.has_ended:
            return True
        return self._lookout.is_news(self._kept.found, shown)

    async def stage(self, decision: Decision, look: Look, now: str, only: Collection[str] | None = None) -> Decision:
        """The decision as the revisions in force leave it. What begins is recorded, here and in the clusters.

        `now`: RFC 3339. `only`: these clusters alone may change, for nobody looked at the others; None: all.

        Raises:
            FleetHeld: another journal holds the fleet.
        """
        self._kept.read_again()
        if not decision.fleet.rollouts:
            self._kept.forget(self._kept.found)
            self._lookout.forget()
            self.progress, self._next_s = (), NEVER_S
            return decision
        standing = await self._stand(decision, look, now)
        standing = _with_recorded(standing, await self._record(decision, standing, look, only))
        if self._entering is not None:
            self._entering.drop_ended()
        self.progress = tuple(standing.progress.values())
        self._plan_next(now)
        return self._staged.of(decision, standing, look)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        if self._entering is not None:
            await self._entering.close()

    async def as_recorded(self, decision: Decision, look: Look, now: str) -> Decision:
        """The decision as the revisions that are recorded leave it; nothing begins, and no time of success ends."""
        if not decision.fleet.rollouts:
            return decision
        standing = await self._stand(decision, look, now)
        return self._staged.of(decision, replace(standing, records=self._kept.found), look)

    async def _stand(self, decision: Decision, look: Look, now: str) -> Standing:
        fleet = decision.fleet
        self._kept.forget(self._kept.found.keys() - {rollout.name for rollout in fleet.rollouts})
        selection = self._lookout.follow(decision)
        late = self._entering.away() if self._entering is not None else {}
        seen = Seen(away={**late, **look.away}, closed=look.closed, applied=look.copies.__contains__)
        await self._adopt(decision, selection, seen, look, now)
        known = self._kept.found
        recorded = {record.revision for records in known.values() for record in records.values()}
        pins = {pin for rollout in fleet.rollouts for pin in rollout.pins.values()}
        revisions = await self._revisions.of(fleet, recorded, pins)
        sights = await self._lookout.look(known, look.shown, look.reachable)
        return stand(decision, selection, known, revisions, replace(seen, sights=sights), now)

    async def _adopt(self, decision: Decision, selection: Selection, seen: Seen, look: Look, now: str) -> None:
        """Begin with what runs, where a Rollout is new."""
        head = decision.fleet.revision
        found = begun_with(decision, selection, self._kept.found, seen, look.former or head, now)
        for name, records in found.items():
            begun = {cluster: {name: record} for cluster, record in records.items()}
            if self._entering is not None and not decision.fleet.settings.observe_only:
                # Where it cannot be written now, the journal alone knows it until something begins there.
                await self._enter(decision, look.reachable, begun)
            self._kept.take(name, records)

    async def _record(
        self, decision: Decision, standing: Standing, look: Look, only: Collection[str] | None
    ) -> Records:
        """What is recorded from now on. What a cluster could not be told has not begun."""
        begun: dict[str, dict[str, Record]] = {}
        for name, progress in standing.progress.items():
            for change in progress.changes:
                if isinstance(change, Begin):
                    begun.setdefault(change.cluster, {})[name] = progress.records[change.cluster]
        known = {cluster for progress in standing.progress.values() for cluster in progress.records}
        refused = known - set(only) if only is not None else set[str]()
        is_writing = self._entering is not None and not decision.fleet.settings.observe_only
        entered: Mapping[str, Begun] = {}
        if is_writing:
            entering = {name: records for name, records in begun.items() if name not in refused}
            await self._keep(standing.progress.values(), look.former)
            entered = await self._enter(decision, look.reachable, entering)
            refused |= entering.keys() - entered.keys()
        found: dict[str, Mapping[str, Record]] = {}
        for name, progress in standing.progress.items():
            before = self._kept.found.get(name, {})
            after = dict(progress.records) | {at: records[name] for at, records in entered.items() if name in records}
            for cluster in refused:
                after.pop(cluster, None)
                if cluster in before:
                    after[cluster] = before[cluster]
            found[name] = after
            if is_writing:
                self._kept.take(name, after)
        return found

    async def _keep(self, progresses: Iterable[Progress], former: str) -> None:
        """Keep what is about to be recorded readable, whatever becomes of the branch."""
        revisions = {record.revision for progress in progresses for record in progress.records.values()}
        await self._revisions.keep(revisions | {each.waiting for each in progresses} | {former} if revisions else ())

    async def _enter(self, decision: Decision, reachable: Reachable, begun: Mapping[str, Begun]) -> Mapping[str, Begun]:
        """What is written into the clusters by now, of what begins there."""
        if not begun:
            return {}
        assert self._entering is not None, "somebody holds the fleet"
        members = {name: found for name in begun if isinstance(found := reachable.get(name), MemberCluster)}
        return await self._entering.enter(decision.fleet.settings.name, members, begun)

    def _plan_next(self, now: str) -> None:
        again_in_s = wait_s((progress.look_again for progress in self.progress), now) + SURELY_OVER_S
        if self._lookout.asks_conditions:
            again_in_s = min(again_in_s, CHECKED_S)
        self._next_s = self._clock.monotonic_s() + again_in_s


def _with_recorded(standing: Standing, records: Records) -> Standing:
    """The standing with what could be recorded; where a revision could not begin, nothing is deleted by it."""
    progress = {
        name: replace(found, deletions_due=frozenset(_begun(found, records.get(name, {}))))
        for name, found in standing.progress.items()
    }
    return replace(standing, progress=progress, records=records)


def _begun(progress: Progress, records: Mapping[str, Record]) -> list[str]:
    due = sorted(progress.deletions_due)
    return [name for name in due if _beginning(progress.records[name]) == _beginning(records.get(name, Record()))]


def _beginning(record: Record) -> tuple[str, str]:
    return record.revision, record.begun_at
