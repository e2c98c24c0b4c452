"""The health cache of copies, fed by rounds, events and answers to writes; and the pods of unhealthy workloads.

Healthy copies are not kept. The newest version of an object counts, whatever its source.

A workload's own status only counts ready replicas. So the pods of its namespace are listed after some seconds, ever
more rarely while no new one becomes unhealthy there; if it lacks pods, the events, too. Without the right, status does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.clock import Clock, within
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.inbox import HealthChanged, Inbox, Published
from reconciler.controller.loop_state import State
from reconciler.controller.retries.restores import number_of
from reconciler.controller.tasks import WorkQueue
from reconciler.errors import MemberClusterError
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.pod_shapes import Pod
from reconciler.observe.pod_counts import STARTS_S, pod_troubles, refusals, starting
from reconciler.state import NO_CONTROLLER, Degraded, HealthState, Healthy, Progressing, beside_pods

_EVENT = GVK("", "v1", "Event")
_VERSIONS_MAX = 100_000
"""Limit of kept versions; for an object without one, the later report counts."""


class _HealthEntry(NamedTuple):
    """Health of a copy by its own status, with the reasons from its pods and from events of its controller."""

    own: Progressing | Degraded
    trouble: Progressing | Degraded | None
    refusal: str
    """The reason of an event why a pod of it was not made; empty: none."""
    is_starting: bool = True
    """Its pods were not asked yet, or some are new: that fewer are available than wanted is no fault."""
    is_asked: bool = False

    def together(self) -> Progressing | Degraded:
        own = self.own
        if self.is_starting and own.is_a_count:
            own = Progressing(own.why, lacks_pods_of=own.lacks_pods_of)
        trouble = self.trouble
        if trouble is not None and trouble.reason == NO_CONTROLLER and own.is_observed:
            trouble = None
        joint = beside_pods(own, trouble, self.refusal)
        if self.is_asked and joint.unmade and isinstance(joint, Progressing):
            return Degraded(joint.why, joint.unmade, joint.lacks_pods_of, joint.reason)
        return joint


class HealthCache:
    """Unhealthy copies, by cluster."""

    def __init__(self, inbox: Inbox) -> None:
        """Begin empty. `inbox`: is sent that a health has changed."""
        self._states: dict[str, dict[Identity, HealthState]] = {}
        self._versions: dict[Copy, int] = {}
        self._entries: dict[Copy, _HealthEntry] = {}
        """Of what has pods that say more than its own status."""
        self._written: dict[str, set[Identity]] = {}
        """By cluster what was written since the round that goes on began to read."""
        self._inbox = inbox
        self.stirred: set[Copy] = set()
        """Unhealthy copies that differ from the last time when their pods were asked."""
        self.has_news = False
        """True if anything differs from what was shown last."""

    def snapshot(self) -> Mapping[str, Mapping[Identity, HealthState]]:
        """Return the present state; it does not change later."""
        self.has_news = False
        return {cluster: dict(healths) for cluster, healths in self._states.items()}

    def unhealthy(self) -> Iterator[Copy]:
        """Yield existing, unhealthy copies."""
        for cluster, healths in self._states.items():
            for identity, health in healths.items():
                if isinstance(health, Progressing | Degraded):
                    yield cluster, identity

    def lacking_pods(self, copies: Iterable[Copy]) -> Mapping[str, Identity]:
        """Return those of the copies that lack pods without a reason in their status, by uid."""
        known = ((identity, self._states.get(cluster, {}).get(identity)) for cluster, identity in copies)
        return {
            health.lacks_pods_of: identity
            for identity, health in known
            if isinstance(health, Progressing | Degraded) and health.lacks_pods_of
        }

    def explain(
        self,
        cluster: str,
        troubles: Mapping[Identity, Degraded | Progressing | None],
        refusals: Mapping[Identity, str],
        starting: Collection[Identity],
        lasting: Collection[Identity],
    ) -> None:
        """Take reasons from the pods of workloads, and why pods are not made.

        `starting`: they have new pods. `lasting`: a controller would have seen them by now.
        """
        for identity, of_pods in troubles.items():
            copy = (cluster, identity)
            known = self._states.get(cluster, {}).get(identity)
            if not isinstance(known, Progressing | Degraded):
                continue  # It is well by now.
            before = self._entries.pop(copy, None)
            own = before.own if before is not None else known
            is_unobserved = identity in lasting and not own.is_observed
            trouble = of_pods or (Progressing(own.why, reason=NO_CONTROLLER) if is_unobserved else None)
            refusal = refusals.get(identity, "")
            if trouble is not None or refusal or own.unmade or own.is_a_count:
                self._entries[copy] = _HealthEntry(own, trouble, refusal, identity in starting, is_asked=True)
                own = self._entries[copy].together()
            self._set(cluster, identity, own)

    def note(self, cluster: str, identity: Identity, resource_version: str, health: HealthState) -> None:
        """An event, a round, or the answer to a write shows an object of this version."""
        copy, version = (cluster, identity), number_of(resource_version)
        if version < self._versions.get(copy, 0):
            return
        if len(self._versions) >= _VERSIONS_MAX:
            self._versions.clear()
        self._versions[copy] = version
        self._put(cluster, identity, health)

    def round_begins(self) -> None:
        """Begin a round: its reading does not show later writes."""
        self._written.clear()

    def written(self, cluster: str, identity: Identity, resource_version: str, health: HealthState | None) -> None:
        """The answer to a write of ours. `health` None: it is wanted no more."""
        self._written.setdefault(cluster, set()).add(identity)
        if health is None:
            self.gone(cluster, identity, None)
        else:
            self.note(cluster, identity, resource_version, health)

    def older(self, cluster: str, listed: Iterable[LiveObject]) -> Iterator[tuple[LiveObject, int]]:
        """Yield objects that a list shows in an earlier version than seen before, with that version."""
        for live in listed:
            known = self._versions.get((cluster, live.identity), 0)
            if 0 < number_of(live.resource_version) < known:
                yield live, known

    def forget(self, cluster: str) -> None:
        """Nothing is known of a cluster any more."""
        for identity in tuple(self._states.get(cluster, ())):
            self._put(cluster, identity, None)
        for copies in (self._versions, self._entries):
            for copy in [copy for copy in copies if copy[0] == cluster]:
                del copies[copy]

    def gone(self, cluster: str, identity: Identity, health: HealthState | None) -> None:
        """Handle a deletion. `health`: if the object is desired; None: it is not."""
        self._versions.pop((cluster, identity), None)
        self._put(cluster, identity, health)

    def read(self, member: Read, healths: Mapping[Identity, HealthState], wanted: Iterable[Identity] | None) -> None:
        """Handle a round's reading (`wanted` None: of everything): drop missing entries unless written since."""
        known = self._states.get(member.name, {})
        written = self._written.get(member.name, set())
        for identity in set(known) - healths.keys() if wanted is None else set(wanted) & known.keys() - healths.keys():
            if identity not in member.under_way and identity not in member.unread and identity not in written:
                self._put(member.name, identity, None)
        for identity, health in healths.items():
            if identity in written:
                continue
            live = member.objects.get(identity)
            if live is None:
                self._put(member.name, identity, health)
            elif identity in known or not isinstance(health, Healthy):
                self.note(member.name, identity, live.resource_version, health)

    def _put(self, cluster: str, identity: Identity, health: HealthState | None) -> None:
        copy = (cluster, identity)
        before = self._entries.pop(copy, None)
        if isinstance(health, Progressing | Degraded) and (before or health.unmade or health.is_a_count):
            if before is not None and health.is_observed and not before.own.is_observed:
                before = None  # Its controller begins with new pods.
            # Until its pods are listed again, their last diagnostics count.
            self.stirred.add(copy)
            self._entries[copy] = (before or _HealthEntry(health, None, ""))._replace(own=health)
            health = self._entries[copy].together()
        self._set(cluster, identity, health)

    def _set(self, cluster: str, identity: Identity, health: HealthState | None) -> None:
        new = None if isinstance(health, Healthy) else health
        known = self._states.setdefault(cluster, {})
        if known.get(identity) == new:
            return
        if new is None:
            del known[identity]
        else:
            known[identity] = new
        self.has_news = True
        self._inbox.send(HealthChanged())


log = logging.getLogger("reconciler")

_AT_ONCE = 4
"""So many namespaces of one cluster are asked in one turn."""

_Place = tuple[str, str]


class PodDiagnostics:
    """The namespaces that are asked, by when."""

    def __init__(self, healths: HealthCache, interpreters: Registry, clock: Clock) -> None:
        self._healths = healths
        self._interpreters = interpreters
        self._since: dict[Copy, float] = {}
        self._clock = clock
        self._queue = WorkQueue[_Place](timing.RETRY_BACK_OFF, clock)
        self._listed: dict[_Place, frozenset[Copy]] = {}
        """Unhealthy copies of a namespace when it was asked last."""

    async def watch(self, latest: Published[State]) -> None:
        """Look now and then, without end, in the clusters that can be reached by then."""
        while True:
            await self._clock.sleep(timing.TICK_S)
            await self.list_due(answered_by(latest.value.reachable))

    async def list_due(self, members: Mapping[str, MemberCluster]) -> int:
        """List the pods of unhealthy workloads that are due; return the number of lists."""
        # A bare Pod reports all of it itself.
        kinds = self._interpreters.kinds_with("pod_template") - {("", "Pod")}
        ailing = [copy for copy in self._healths.unhealthy() if copy[1][:2] in kinds]
        if not ailing:
            self._since, self._listed = {}, {}
            self._queue.keep(())
            return 0
        now_s = self._clock.monotonic_s()
        self._since = {copy: self._since.get(copy, now_s) for copy in ailing}
        due = self._due(members)
        await asyncio.gather(*(self._ask(members[cluster], namespace) for cluster, namespace in due))
        return len(due)

    def _due(self, members: Iterable[str]) -> list[_Place]:
        now_s = self._clock.monotonic_s()
        places: dict[_Place, set[Copy]] = {}
        for copy, since_s in self._since.items():
            if now_s - since_s >= timing.AILS_S and copy[0] in members:
                places.setdefault((copy[0], copy[1].namespace), set()).add(copy)
        self._listed = {place: copies for place, copies in self._listed.items() if place in places}
        self._queue.keep(places.keys())
        stirred, self._healths.stirred = self._healths.stirred, set()
        for place, copies in sorted(places.items()):
            if not copies <= self._listed.get(place, frozenset()):
                self._queue.reset(place)
                self._queue.requeue_after(place, 0.0)
            elif copies & stirred:
                self._queue.reset(place)
                self._queue.add_after(place, timing.RETRY_BACK_OFF.least_s)
        due: list[_Place] = []
        for place in self._queue.due():
            if sum(cluster == place[0] for cluster, _ in due) < _AT_ONCE:
                self._queue.requeue_rate_limited(place)
                self._listed[place] = frozenset(places[place])
                due.append(place)
        return due

    async def _ask(self, member: MemberCluster, namespace: str) -> None:
        copies = [copy for copy in self._since if copy[0] == member.name and copy[1].namespace == namespace]
        lasting = [copy[1] for copy in copies if self._since[copy] <= self._clock.monotonic_s() - STARTS_S]
        lacking = self._healths.lacking_pods(copies)
        now = self._clock.now()
        listing = await try_await(within(member.pods(namespace=namespace), timing.PROMPT_S))
        pods = listing.value or ()
        refused = await try_await(within(_refusals(member, namespace, pods, lacking), timing.PROMPT_S))
        explained = try_call(pod_troubles, pods, now)
        for fault in filter(None, (listing.fault, refused.fault, explained.fault)):
            if isinstance(fault, MemberClusterError | TimeoutError):
                unanswered = {"cluster": member.name, "error": str(fault)}
                log.debug("it could not be asked why pods do not run", extra=unanswered)
            else:
                extra = fault_fields(member.name, f"pods of {namespace}")
                log.error("pods could not be understood", exc_info=fault, extra=extra)
        troubles, why = explained.value or {}, refused.value or {}
        of_pods = {identity: troubles.get(identity) for _, identity in copies}
        refused_pods = {lacking[uid]: text for uid, text in why.items()}
        self._healths.explain(member.name, of_pods, refused_pods, starting(pods, now), lasting)


async def _refusals(
    member: MemberCluster, namespace: str, pods: Collection[Pod], lacking: Collection[str]
) -> Mapping[str, str]:
    if not lacking:
        return {}
    events = await member.list_objects(_EVENT, namespace=namespace, field_selector="reason=FailedCreate")
    return refusals(events.objects, pods, lacking)
