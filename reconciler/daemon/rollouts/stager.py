"""Rollouts of one fleet: what is seen is judged, what begins is recorded, and a decision is staged by it.

A revision is written into the ConfigMap of a cluster, then into the journal, and then its first body is written: a
crash between two of these costs nothing. Source: ADR 18.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.journal.mirror import Ledger
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.observing.members import PROMPT_S, Reachable
from reconciler.daemon.rollouts.entering import Begun, Enter, Entering
from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
from reconciler.daemon.rollouts.sights import Followed, asks_conditions, followed_in, sights_of, with_conditions
from reconciler.engine import Decision
from reconciler.model.binding import PreviousPlacement
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Begin, Record, Sight
from reconciler.stages.observations import wait_s
from reconciler.stages.rollouts import Selection
from reconciler.stages.staging import (
    Records,
    Seen,
    SelectedTables,
    Standing,
    begun_with,
    staged,
    stand,
)
from reconciler.stages.state import FleetState

_CHECKED_S = 5.0
"""How often objects are asked for that gates name: nobody watches them."""
_NEVER_S = float("inf")
SURELY_OVER_S = 0.1
"""So much later than a time is told it is looked again: clocks tell moments to the second or finer."""

Sights = dict[str, dict[str, Sight]]
"""By Rollout and cluster."""
Writing = tuple[Journal, Enter]
"""Where a beginning is recorded: here, and in the cluster."""


class Look(Struct, frozen=True, kw_only=True):
    """What is known when a decision is staged.

    `shown`: the state of the fleet after the last round. `closed`: clusters that windows of the fleet close, with
    RFC 3339 of the end. `away`: clusters that cannot be changed now, and why. `former`: the revision of the last round.
    """

    reachable: Reachable
    ledger: Ledger
    copies: Mapping[Identity, Collection[str]]
    previous: Mapping[Identity, PreviousPlacement]
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    shown: FleetState | None = None
    former: str = ""


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
        self._records: Records = records
        self._writing = writing
        self._entering = Entering(writing[1], clock, within_s, wake) if writing is not None else None
        self._tables = SelectedTables()
        self._followed: tuple[Followed, ...] = ()
        self._of: tuple[Fleet, Selection] | None = None
        """What is followed is of these."""
        self._seen: Sights = {}
        self._asks_conditions = False
        self._memo: tuple[object, ...] = ()
        self._staged: Decision | None = None
        self._next_s = _NEVER_S
        self.progress: tuple[Progress, ...] = ()

    @property
    def next_s(self) -> float:
        """When something can change by itself, by the monotonic clock."""
        return min(self._next_s, self._entering.next_s if self._entering is not None else _NEVER_S)

    def is_news(self, shown: FleetState | None) -> bool:
        """Whether what is seen of the clusters is otherwise than when it was judged last."""
        if not self.progress:
            return False
        if self._entering is not None and self._entering.has_ended:
            return True
        return self._see(shown) != self._seen

    async def stage(self, decision: Decision, look: Look, now: str, only: Collection[str] | None = None) -> Decision:
        """The decision as the revisions in force leave it. What begins is recorded, here and in the clusters.

        `now`: RFC 3339. `only`: these clusters alone may change, for nobody looked at the others; None: all.

        Raises:
            FleetHeld: another journal holds the fleet.
        """
        if self._writing is not None:
            # What a cluster told when the fleet was held there may be in the journal by now.
            self._records = self._writing[0].rollout_records()
        if not decision.fleet.rollouts:
            self._forget(self._records)
            self.progress, self._next_s, self._seen = (), _NEVER_S, {}
            return decision
        standing = await self._stand(decision, look, now)
        standing = replace(standing, records=await self._record(decision, standing, look, only))
        if self._entering is not None:
            self._entering.drop_ended()
        self.progress = tuple(standing.progress.values())
        self._plan_next(now)
        return self._applied(decision, standing, look)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        if self._entering is not None:
            await self._entering.close()

    async def as_recorded(self, decision: Decision, look: Look, now: str) -> Decision:
        """The decision as the revisions that are recorded leave it; nothing begins, and no time of success ends."""
        if not decision.fleet.rollouts:
            return decision
        standing = await self._stand(decision, look, now)
        return self._applied(decision, replace(standing, records=self._records), look)

    async def _stand(self, decision: Decision, look: Look, now: str) -> Standing:
        fleet = decision.fleet
        self._forget(self._records.keys() - {rollout.name for rollout in fleet.rollouts})
        selection = self._follow(decision)
        late = self._entering.away() if self._entering is not None else {}
        seen = Seen(away={**late, **look.away}, closed=look.closed, applied=look.copies.__contains__)
        await self._adopt(decision, selection, seen, look, now)
        recorded = {record.revision for records in self._records.values() for record in records.values()}
        pins = {pin for rollout in fleet.rollouts for pin in rollout.pins.values()}
        revisions = await self._revisions.of(fleet, recorded, pins)
        self._seen = self._see(look.shown)
        seen = replace(seen, sights=await self._look_closer(look))
        return stand(decision, selection, self._records, revisions, seen, now)

    def _applied(self, decision: Decision, standing: Standing, look: Look) -> Decision:
        """The same decision as before where nothing that it rests on differs."""
        due = [(each.deletions_due, each.placement_due) for each in standing.progress.values()]
        memo = (decision, standing.records, standing.newest, due, standing.fleets, look.copies, look.previous)
        known = self._memo
        is_same = bool(known) and known[0] is decision and known[5] is memo[5] and known[6] is memo[6]
        if not (is_same and known[1:5] == memo[1:5]) or self._staged is None:
            self._staged = staged(decision, standing, look.ledger, look.copies, look.previous)
        self._memo = memo
        return self._staged

    def _follow(self, decision: Decision) -> Selection:
        """What the Rollouts of a decision are about, found out once: it is looked at whenever anything is told."""
        fleet, selection = decision.fleet, self._tables.update(decision)
        is_same = self._of is not None and self._of[1] is selection and _are_alike(self._of[0], fleet)
        if not is_same:
            self._followed = followed_in(fleet, selection)
        self._of = (fleet, selection)
        return selection

    def _see(self, shown: FleetState | None) -> Sights:
        return {each.name: sights_of(each, self._records.get(each.name, {}), shown) for each in self._followed}

    async def _look_closer(self, look: Look) -> Sights:
        """What is seen, with the conditions that gates ask for."""
        found: Sights = dict(self._seen)
        self._asks_conditions = False
        for each in self._followed:
            records = self._records.get(each.name, {})
            if asks_conditions(each.layout, records):
                self._asks_conditions = True
                plain = self._seen[each.name]
                found[each.name] = await with_conditions(each, records, plain, look.shown, look.reachable)
        return found

    async def _adopt(self, decision: Decision, selection: Selection, seen: Seen, look: Look, now: str) -> None:
        """Begin with what runs, where a Rollout is new."""
        head = decision.fleet.revision
        found = begun_with(decision, selection, self._records, seen, look.former or head, now)
        for name, records in found.items():
            begun = {cluster: {name: record} for cluster, record in records.items()}
            if self._writing is not None and not decision.fleet.settings.observe_only:
                # Where it cannot be written now, the journal alone knows it until something begins there.
                await self._enter(decision, look.reachable, begun)
            self._take(name, records)

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
        is_writing = self._writing is not None and not decision.fleet.settings.observe_only
        entered: Mapping[str, Begun] = {}
        if is_writing:
            entering = {cluster: records for cluster, records in begun.items() if cluster not in refused}
            await self._keep(standing.progress.values(), look.former)
            entered = await self._enter(decision, look.reachable, entering)
            refused |= entering.keys() - entered.keys()
        found: dict[str, Mapping[str, Record]] = {}
        for name, progress in standing.progress.items():
            before = self._records.get(name, {})
            after = dict(progress.records) | {at: records[name] for at, records in entered.items() if name in records}
            for cluster in refused:
                after.pop(cluster, None)
                if cluster in before:
                    after[cluster] = before[cluster]
            found[name] = after
            if is_writing:
                self._take(name, after)
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

    def _take(self, name: str, after: Mapping[str, Record]) -> None:
        """Record what differs from before."""
        before = self._records.get(name, {})
        if before == after:
            return
        if self._writing is not None:
            differing: dict[str, Record | None] = {
                cluster: after.get(cluster)
                for cluster in {*before, *after}
                if before.get(cluster) != after.get(cluster)
            }
            self._writing[0].record_rollouts(name, differing)
        self._records = {**self._records, name: dict(after)}

    def _forget(self, names: Iterable[str]) -> None:
        """Take away what is recorded of Rollouts that are no more."""
        for name in list(names):
            self._take(name, {})
            self._records = {other: found for other, found in self._records.items() if other != name}

    def _plan_next(self, now: str) -> None:
        again_in_s = wait_s((progress.look_again for progress in self.progress), now) + SURELY_OVER_S
        if self._asks_conditions:
            again_in_s = min(again_in_s, _CHECKED_S)
        self._next_s = self._clock.monotonic_s() + again_in_s


def _are_alike(one: Fleet, other: Fleet) -> bool:
    """Whether stages have the same clusters."""
    return one.rollouts == other.rollouts and one.clusters == other.clusters


def away_in(reachable: Reachable, held: Mapping[str, str], closed: Mapping[str, str]) -> dict[str, str]:
    """Why clusters cannot be changed now: unreachable, held by somebody else, or suspended by a person."""
    found = {name: member for name, member in reachable.items() if isinstance(member, str)}
    found |= held
    if "fleet" in closed:
        return dict.fromkeys(reachable, closed["fleet"]) | found
    return {name: closed[f"cluster {name}"] for name in reachable if f"cluster {name}" in closed} | found
