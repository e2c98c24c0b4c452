"""Rollouts in the process of a shard: the leader decides what begins where, and here it is written and seen.

A revision is written into the mark of a cluster, then into the journal, and then its first body is written, as where
one process does everything. Until the leader has told by the revision that is in force here, everything stays at what
is recorded. Source: ADR 22.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.daemon.rollouts.applied import StagedDecision
from reconciler.daemon.rollouts.entering import Begun, Entering
from reconciler.daemon.rollouts.kept_records import KeptRecords
from reconciler.daemon.rollouts.look import Look, Writing
from reconciler.daemon.rollouts.lookout import Lookout
from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
from reconciler.daemon.rollouts.stager import CHECKED_S, NEVER_S
from reconciler.engine import Decision
from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Record
from reconciler.model.rollouts.told import NO_ROLLOUTS, Report, RolloutAccount
from reconciler.stages.staging import Records, Seen, Sights, Standing, as_told, stand, to_begin, until_told, with_told
from reconciler.stages.state import FleetState

_UNTOLD = "the leader has not told of this revision yet"


class Follower:
    """Stages one decision after the other as the leader says."""

    def __init__(
        self,
        revisions: RevisionsInForce,
        clock: Clock,
        writing: Writing,
        *,
        within_s: float = PROMPT_S,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`writing`, `within_s`, `wake`: as of a `Stager`."""
        journal, enter = writing
        self._revisions = revisions
        self._clock = clock
        self._kept = KeptRecords(journal, journal.rollout_records())
        self._entering = Entering(enter, clock, within_s, wake)
        self._lookout = Lookout()
        self._staged = StagedDecision()
        self._directions: RolloutAccount | None = None
        self._checked_s = NEVER_S
        self.progress: tuple[Progress, ...] = ()
        self.account = NO_ROLLOUTS
        """What is told to the leader."""

    @property
    def next_s(self) -> float:
        """When something can change by itself, by the monotonic clock."""
        return min(self._checked_s, self._entering.next_s)

    def is_news(self, shown: FleetState | None, directions: RolloutAccount | None) -> bool:
        """Whether what is seen of the clusters, or what the leader tells, is otherwise than when it was looked at."""
        if not self.progress:
            return False
        is_told = directions is not self._directions and directions != self._directions
        return is_told or self._entering.has_ended or self._lookout.is_news(self._kept.found, shown)

    async def stage(self, decision: Decision, look: Look, now: str) -> Decision:
        """The decision as the revisions in force leave it. What begins is recorded, here and in the clusters.

        Raises:
            FleetHeld: another journal holds the fleet.
        """
        fleet, directions = decision.fleet, look.directions
        self._directions = directions
        self._kept.read_again()
        self._kept.forget(self._kept.found.keys() - {rollout.name for rollout in fleet.rollouts})
        clusters = {name: self._why_away(name, look) for name in sorted(look.own)}
        if not fleet.rollouts:
            self._lookout.forget()
            self.progress, self._checked_s = (), NEVER_S
            self.account = RolloutAccount(revision=fleet.revision, clusters=clusters)
            return decision
        is_told = directions is not None and directions.revision == fleet.revision
        told = directions if is_told and directions is not None else NO_ROLLOUTS
        standing = await self._stand(decision, look, told, now)
        self.progress = tuple(standing.progress.values())
        sights = await self._lookout.look(self._kept.found, look.shown, look.reachable)
        self.account = RolloutAccount(
            revision=fleet.revision, clusters=clusters, reports=_reports(self._kept.found, sights)
        )
        is_asking = self._lookout.asks_conditions
        self._checked_s = self._clock.monotonic_s() + CHECKED_S if is_asking else NEVER_S
        return self._staged.of(decision, standing, look)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        await self._entering.close()

    def _why_away(self, cluster: str, look: Look) -> str:
        why = look.away.get(cluster) or self._entering.away().get(cluster, "")
        is_asked = isinstance(look.reachable.get(cluster), MemberCluster)
        return why or ("" if is_asked else "it was not asked yet")

    async def _stand(self, decision: Decision, look: Look, told: RolloutAccount, now: str) -> Standing:
        """Where the Rollouts stand: as the leader tells, and as is recorded in the clusters of the shard."""
        fleet = decision.fleet
        selection = self._lookout.follow(decision)
        await self._revisions.keep(_revisions(self._kept.found, look.directions or told))
        await self._follow(decision, look, told)
        records = {rollout.name: self._kept.found.get(rollout.name, {}) for rollout in fleet.rollouts}
        recorded = {record.revision for found in records.values() for record in found.values()}
        revisions = await self._revisions.of(fleet, recorded, ())
        seen = Seen(away=dict.fromkeys(fleet.clusters, _UNTOLD), closed=look.closed, applied=look.is_applied)
        standing = stand(decision, selection, records, revisions, seen, now)
        progress, newest = dict(standing.progress), dict(standing.newest)
        for name, found in standing.progress.items():
            if name in told.progress:
                progress[name] = as_told(told.progress[name], records[name], look.own)
                newest[name] = told.progress[name].waiting or told.progress[name].release
            else:
                progress[name] = until_told(found, records[name])
        return replace(standing, progress=progress, records=records, newest=newest)

    async def _follow(self, decision: Decision, look: Look, told: RolloutAccount) -> None:
        """Record what the leader lets begin, once the clusters say so, and what else it knows."""
        begun: dict[str, dict[str, Record]] = {}
        for name, progress in told.progress.items():
            own, pending = self._kept.found.get(name, {}), told.pending.get(name, {})
            for cluster, record in to_begin(own, progress.records, pending, look.own - look.away.keys()).items():
                begun.setdefault(cluster, {})[name] = record
        entered: Mapping[str, Begun] = {}
        if begun and not decision.fleet.settings.observe_only:
            members = {name: found for name in begun if isinstance(found := look.reachable.get(name), MemberCluster)}
            entered = await self._entering.enter(decision.fleet.settings.name, members, begun)
        self._entering.drop_ended()
        for rollout in decision.fleet.rollouts:
            name = rollout.name
            own = dict(self._kept.found.get(name, {}))
            own |= {cluster: records[name] for cluster, records in entered.items() if name in records}
            given = told.progress[name].records if name in told.progress else {}
            self._kept.take(name, with_told(own, given, look.own))


def _revisions(known: Records, told: RolloutAccount) -> set[str]:
    """What has to stay readable: what is in force here, and what may begin here next."""
    found = {record.revision for records in known.values() for record in records.values()}
    for progress in told.progress.values():
        found |= {progress.release, progress.waiting, *(record.revision for record in progress.records.values())}
    return found


def _reports(known: Records, sights: Sights) -> dict[str, dict[str, Report]]:
    return {
        name: {
            cluster: Report(record=record, sight=sights.get(name, {}).get(cluster))
            for cluster, record in sorted(records.items())
        }
        for name, records in sorted(known.items())
    }
