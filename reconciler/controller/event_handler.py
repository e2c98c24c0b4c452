"""The event handler of watches: echoes of our own writes and synced objects enqueue nothing.

Source: design#events-are-nudges: a round always reads state; an event only shows what may be stale.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from reconciler.api.clusters import LiveObject, Present
from reconciler.api.ledger import EventKind
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.api.rollout_progress import Phase
from reconciler.containment import fault_fields
from reconciler.controller.inbox import ClusterChanged, HealthChanged, Inbox, Published
from reconciler.controller.loop_state import Established, LoopParts, State
from reconciler.controller.retries.caches import RoundCaches
from reconciler.controller.retries.workers import ApplyResult
from reconciler.controller.watches.handlers import WatchHandler
from reconciler.diff import Comparer
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.kube.watch_stream import WatchEvent
from reconciler.ownership import is_terminating
from reconciler.scheduler import package_mates
from reconciler.state import MISSING, health_of

log = logging.getLogger("reconciler")


class EventHandler(WatchHandler):
    """Sends to the inbox what the next round must look at."""

    def __init__(
        self, parts: LoopParts, latest: Published[State], inbox: Inbox, memory: RoundCaches, established: Established
    ) -> None:
        self._established = established
        self._strangers: dict[tuple[str, GVK], frozenset[str]] = {}
        """By cluster and kind the uids of what carries our mark and was never applied, in the last list."""
        self._parts, self._memory = parts, memory
        self._latest = latest
        self._inbox = inbox
        self._passed: set[Identity] | None = None

    def round_begins(self) -> None:
        """Begin a round: it reads the clusters from now on; its pending waits are unknown before its end."""
        self._passed = set()
        self._memory.healths.round_begins()

    def round_ends(self) -> None:
        """Mark what waits since this round and had an event that showed nothing to concern us before."""
        missed = [identity for identity in self._passed or () if self._is_awaited(identity)]
        self._passed = None
        self._inbox.changed(missed)

    def caught_up(self, ended: ApplyResult) -> None:
        """Enqueue the objects skipped during a cluster's writes, and handle the events kept meanwhile."""
        self._inbox.changed(ended.skipped, ended.cluster)
        # The event of the write itself was not kept; dependents may go on all the same.
        written = {result.change.identity for result in ended.results if not result.error}
        if self._passed is not None:
            self._passed |= written
        else:
            self._inbox.changed(filter(self._is_awaited, written))
        for event in ended.events:
            self.object_changed(ended.cluster, event)

    def list_requested(self, cluster: str, gvk: GVK) -> None:
        """A list of a kind is asked for."""
        self._memory.synced.list_begins(cluster, gvk.group_kind)

    def listed(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> None:
        """Look at what a complete list of a kind contradicts of the synced versions; at all, where it was at fault."""
        self._note_answer(cluster, gvk)
        self._inbox.changed(self._doubtful(cluster, gvk, objects), cluster)

    def _doubtful(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> set[Identity]:
        """Return the objects of a complete list that contradict synced versions, without pending writes."""
        if isinstance(self._latest.value.reachable.get(cluster), str):
            self.doubted(cluster)
            return set()
        self._memory.suspect_older(cluster, objects)
        doubtful = self._memory.synced.doubtful(cluster, gvk.group_kind, objects)
        written = {identity for identity in doubtful if self._memory.workers.is_under_way(cluster, identity)}
        if not written:
            return doubtful
        there = [live for live in objects if live.identity in written]
        for live in there:
            self._memory.workers.listed(cluster, live)
        self._memory.workers.skip(cluster, written.difference(live.identity for live in there))
        return doubtful - written

    def object_changed(self, cluster: str, event: WatchEvent) -> None:
        """An object came, changed or went."""
        now, live = self._latest.value, event.object
        # The health counts whether or not the event concerns a round.
        self._memory.restores.saw(cluster, live.gvk, live.resource_version)
        if event.type != "DELETED":
            interpreter = self._parts.access.interpreters.of(*live.identity[:2])
            self._memory.healths.note(cluster, live.identity, live.resource_version, health_of(live, interpreter))
        else:
            is_wanted = now.picture is not None and live.identity in now.picture.manifests.get(cluster, {})
            self._memory.healths.gone(cluster, live.identity, MISSING if is_wanted else None)
        if self._memory.workers.saw(cluster, event):
            return
        is_passed = event.type != "DELETED" and self._memory.synced.holds(cluster, live)
        if event.type != "DELETED" and not is_passed:
            try:
                is_passed = self._is_as_wanted(cluster, live)
            except Exception:
                # The boundary of one event: what cannot be judged here is for a round to look at.
                extra = fault_fields(cluster, live.identity)
                log.exception("an event could not be judged; a round looks at the object", extra=extra)
        if is_passed:
            if self._passed is not None:
                self._passed.add(live.identity)
            return
        self._memory.synced.invalidate(cluster, live.identity)
        self._inbox.changed((live.identity,), cluster)

    def _is_as_wanted(self, cluster: str, live: LiveObject) -> bool:
        """Return whether an event shows no relevant change: a status update, a field that is not ours.

        Health matters while something waits for it; then a round has to look. An event with only conflicting fields is
        handled after the back-off.
        """
        now, identity = self._latest.value, live.identity
        manifest = now.picture.manifests.get(cluster, {}).get(identity) if now.picture else None
        fights, now_s = self._memory.fights, self._parts.access.clock.monotonic_s()
        pause_s = fights.pause_left_s(cluster, identity, now_s)
        waits = not pause_s and (
            self._memory.unfinished.waits(cluster, identity) or self._is_awaited_by_mates(identity)
        )
        if manifest is None or now.schedule is None or waits or is_terminating(live):
            return False
        schedule = now.schedule
        snapshot = now.snapshot(schedule.fleet, schedule.interpreters, self._parts.access.clock.now())
        comparison = Comparer(schedule, snapshot).compare(manifest, Present(object=live))
        if pause_s:
            is_left = comparison.change is not None and fights.leaves_alone(comparison.change, now_s)
            if is_left:
                self._inbox.send(HealthChanged())  # It may have been as wanted since it was undone last.
                self._memory.unfinished.requeue_change(cluster, identity, pause_s)
            return is_left
        if not comparison.in_sync:
            return False
        self._memory.synced.confirm(cluster, identity, live.uid, live.resource_version)
        self._established.note(now, cluster, live)
        return True

    def _is_awaited(self, identity: Identity) -> bool:
        return identity in self._memory.unfinished.waiting or self._is_awaited_by_mates(identity)

    def _is_awaited_by_mates(self, identity: Identity) -> bool:
        schedule = self._latest.value.schedule
        packaged = schedule.packaged if schedule is not None else {}
        waiting = self._memory.unfinished.waiting
        return identity in packaged and any(mate in waiting for mate in package_mates(packaged, (identity,)))

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        """Handle a broken watch: a round has to ask the cluster, and reports it if it is unreachable."""
        vital = self._parts.vitals.snapshot.clusters.get(cluster)
        if vital is not None and vital.is_up and cluster not in self._memory.doubted:
            self._memory.doubted.add(cluster)
            self._memory.synced.forget(cluster)
            self.doubted(cluster)

    def unwatched(self, cluster: str, gvk: GVK, why: str) -> None:
        """Handle a refused watch: the next round reports it."""
        if self._memory.kind_faults.unwatched(cluster, gvk, why):
            self.doubted(cluster)

    def ended_early(self, cluster: str) -> None:
        """Count a watch that ended before its time."""
        self._parts.vitals.short_watches[cluster] += 1

    def went_back(self, cluster: str, now: str) -> None:
        """Discard all observations of a restored cluster, and report it once."""
        self._memory.restores.went_back(cluster, now)
        self._memory.synced.forget(cluster)
        self._memory.healths.forget(cluster)
        for key in [key for key in self._strangers if key[0] == cluster]:
            del self._strangers[key]
        data = {"why": "its versions are older than what was seen before; was a backup of its etcd put back?"}
        self._parts.journal.record_event(EventKind.CLUSTER_WENT_BACK, f"cluster {cluster}", data, now)
        log.warning("a cluster went back to an earlier state; it is looked at again",
                    extra={"event": "ClusterWentBack", "cluster": cluster, "why": data["why"]})  # fmt: skip

    def _note_answer(self, cluster: str, gvk: GVK) -> None:
        """A kind that could not be listed has been: its cluster is looked at as a whole."""
        if self._memory.kind_faults.heard(cluster, gvk):
            self.doubted(cluster)

    def unlisted(self, cluster: str, gvk: GVK) -> None:
        """Handle a failed list in a cluster that answers: enqueue it, unless the fault is known."""
        if not self._memory.kind_faults.is_known(cluster, gvk):
            self.doubted(cluster)

    # Where clusters are polled

    def as_of(self, cluster: str, gvk: GVK, version: str) -> None:
        """A list of metadata is as of this version."""
        self._memory.restores.listed(cluster, gvk, version)

    async def is_as_known(self, member: MemberCluster) -> bool:
        """Return whether a cluster has its recorded identity, and nobody else owns the fleet in it."""
        state = self._latest.value
        uid = await member.identity()
        if state.fleet is None or state.known.cluster_uids.get(member.name, uid) != uid:
            return False
        if state.fleet.settings.observe_only:
            return True
        return not await self._parts.holder.held_by([member], state.fleet.settings.name)

    def is_served_as_known(self, cluster: str, served: Collection[GVK], silent: Collection[str]) -> bool:
        """Return whether a cluster serves the same as before. `silent`: as of a ClusterObservation."""
        observed = self._latest.value.observations.clusters.get(cluster)
        if observed is None or observed.apis is None:
            return True
        return (observed.apis, observed.silent) == (frozenset(served), frozenset(silent))

    def polled(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> frozenset[Identity]:
        """Return the objects of a list to read in full: unseen versions. Enqueue missing ones and strangers."""
        self._note_answer(cluster, gvk)
        doubtful = self._doubtful(cluster, gvk, objects)
        there = {live.identity: live for live in objects if live.identity in doubtful}
        self._inbox.changed(doubtful - there.keys(), cluster)
        state = self._latest.value
        wanted = state.picture.manifests.get(cluster, {}) if state.picture is not None else {}
        known = state.known.ledger.get(cluster, {}).keys() | wanted.keys()
        before = self._strangers.get((cluster, gvk), frozenset())
        self._strangers[cluster, gvk] = frozenset(live.uid for live in objects if live.identity not in known)
        if any(live.uid not in before for identity, live in there.items() if identity not in known):
            self.doubted(cluster)
        return frozenset(there.keys() & known)

    def missed(self, cluster: str, identity: Identity) -> None:
        """It was read by name, and is not there: a round has to look."""
        if self._memory.workers.is_under_way(cluster, identity):
            self._memory.workers.skip(cluster, {identity})
            return
        self._memory.synced.invalidate(cluster, identity)
        self._inbox.changed((identity,), cluster)

    def doubted(self, cluster: str) -> None:
        """Everything in a cluster has to be looked at."""
        self._inbox.send(ClusterChanged(cluster))

    def answered(self, cluster: str) -> None:
        """A cluster was listed to the end."""
        self._memory.contacts[cluster] = self._parts.access.clock.now()

    def applied(self, cluster: str) -> Mapping[Identity, GVK]:
        """Return the applied objects of a cluster, with their kinds."""
        return {identity: row.gvk for identity, row in self._latest.value.known.ledger.get(cluster, {}).items()}

    def unhealthy(self) -> Iterable[Copy]:
        """Yield applied, unhealthy copies in reachable clusters."""
        state = self._latest.value
        for cluster, identity in self._memory.healths.unhealthy():
            is_there = not isinstance(state.reachable.get(cluster, ""), str)
            if is_there and identity in state.known.ledger.get(cluster, {}):
                yield cluster, identity

    def hurried(self) -> Collection[str]:
        """The clusters in which a gate of a Rollout is being judged."""
        return {
            name
            for progress in self._latest.value.rollouts
            for name, cluster in progress.clusters.items()
            if cluster.phase is Phase.RUNNING
        }
