"""Watches of our objects, one per cluster and kind: only of kinds that are placed or applied there.

In poll mode, lists of every placed kind take their place. An object with our mark of another kind is found by the lists
of the next round over everything. Source: design#events-are-nudges; Kubernetes: list, then watch from there, list again
when the watch expires.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from functools import partial
from typing import Final

from reconciler.api.fleet import DriftMode
from reconciler.api.ledger import Ledger
from reconciler.api.refs import GVK
from reconciler.clock import Clock
from reconciler.containment import INTERNAL_ERROR, fault_fields
from reconciler.controller import timing
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.watches.handlers import ClusterTasks, PerClient, WatchHandler
from reconciler.controller.watches.polls import Polls
from reconciler.errors import Forbidden, KindFault, ListExpired, MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.kube.watch_stream import Bookmark
from reconciler.ownership import fleet_names, our_label
from reconciler.scheduler import Schedule

EARLY_ENDS: Final = 3
"""So many early ends in a row are no accident, such as the restart of a proxy."""


class Watches(PerClient["ClusterWatches"]):
    """Running watches, and what those of all clusters share."""

    def __init__(
        self, handler: WatchHandler, clock: Clock, jitter: Callable[[], float] = random.random, namespace: str = ""
    ) -> None:
        """Nothing is watched before `keep`. `namespace`: empty: all of them."""
        super().__init__(lambda member: ClusterWatches(member, self))
        self.handler, self.clock, self.jitter, self.namespace = handler, clock, jitter, namespace
        self.transitions = Transitions()


class ClusterWatches(ClusterTasks[GVK]):
    """The watches of one cluster over one client, by kind."""

    def __init__(self, member: MemberCluster, shared: Watches) -> None:
        """Nothing is watched before `keep`."""
        super().__init__(member)
        self._shared, self._handler, self._clock = shared, shared.handler, shared.clock
        self._restless: set[GVK] = set()

    def keep(self, kinds: frozenset[GVK], selector: str) -> None:
        """Watch exactly these kinds from now on."""
        super().keep(kinds, selector)
        for gvk in self.tasks.keys() - kinds:
            self.tasks.pop(gvk).cancel()
            self._handler.unwatched(self.member.name, gvk, "")
        for gvk in sorted(kinds):
            self.begin(gvk, partial(self._follow, gvk, selector), f"watching {self.member.name} {gvk.kind}")

    async def _follow(self, gvk: GVK, selector: str) -> None:
        name, early_ends = self.member.name, EarlyEnds(self._shared.jitter)
        while True:
            version = None
            try:
                version = await self._listed(gvk, selector)
                if version is None:
                    await self._clock.sleep(early_ends.ended_early_s(has_failed=True))
                    continue
                await self._stream(gvk, selector, version, early_ends)
            except ListExpired:
                await self._ended_early(gvk, early_ends, early_ends.ended_early_s())
            except MemberClusterError as error:
                if not isinstance(error, KindFault):  # It answers; what it does not tell, a resync finds.
                    self._handler.trouble(name, error)
                if isinstance(error, Forbidden) and version is not None:
                    self._handler.unwatched(name, gvk, error.message)
                await self._ended_early(gvk, early_ends, early_ends.ended_early_s(has_failed=True), error.message)
            except Exception as error:
                # The boundary of one watch: its new list shows missed changes.
                text = "a watch failed by a fault of this program; it begins again"
                self._shared.transitions.fault((name, gvk), error, text, **fault_fields(name, gvk.kind))
                await self._ended_early(gvk, early_ends, early_ends.ended_early_s(has_failed=True), INTERNAL_ERROR)

    async def _listed(self, gvk: GVK, selector: str) -> str | None:
        """Return the version from which on to watch; None: the kind gives no answer, and the cluster does."""
        name = self.member.name
        self._handler.list_requested(name, gvk)
        try:
            listing = await self.member.list_metadata(gvk, namespace=self._shared.namespace, label_selector=selector)
        except Forbidden:
            raise
        except KindFault:
            self._handler.unlisted(name, gvk)
            return None
        self._handler.as_of(name, gvk, listing.resource_version)
        self._handler.listed(name, gvk, listing.objects)
        return listing.resource_version

    async def _stream(self, gvk: GVK, selector: str, version: str, early_ends: EarlyEnds) -> None:
        """Watch from a version on, again and again. Return when a list has to show missed changes."""
        namespace = self._shared.namespace
        while True:
            begun_s, has_told, has_spoken = self._clock.monotonic_s(), False, False
            stream = self.member.watch(gvk, namespace=namespace, label_selector=selector, resource_version=version)
            async with aclosing(stream) as events:
                async for event in events:
                    has_spoken = True
                    self._lived(gvk, early_ends, begun_s)
                    if isinstance(event, Bookmark):
                        version = event.resource_version
                        continue
                    has_told = True
                    version = event.object.resource_version
                    self._handler.object_changed(self.member.name, event)
            if not self._lived(gvk, early_ends, begun_s):
                await self._ended_early(gvk, early_ends, early_ends.ended_early_s(has_told=has_told))
            elif not has_spoken:
                # An API server speaks at least once before it ends a watch: what came between may have been lost.
                return

    def _lived(self, gvk: GVK, early_ends: EarlyEnds, begun_s: float) -> bool:
        if self._clock.monotonic_s() - begun_s < timing.LIVED_S:
            return False
        early_ends.in_a_row = 0
        name = self.member.name
        self._handler.unwatched(name, gvk, "")
        self._restless.discard(gvk)
        if not self._restless:
            self._shared.transitions.leave(name, "watches last again", event="WatchesLast", cluster=name)
        return True

    async def _ended_early(self, gvk: GVK, early_ends: EarlyEnds, pause_s: float, why: str = "") -> None:
        name = self.member.name
        self._handler.ended_early(name)
        if early_ends.in_a_row >= EARLY_ENDS:
            self._restless.add(gvk)
            self._shared.transitions.enter(name, "restless", logging.WARNING,
                                    "watches end as soon as they begin, or fail; they are opened ever more rarely, and "
                                    "what changes in the cluster is seen later", event="WatchesEndEarly", cluster=name,
                                    obj=gvk.kind, **({"error": why} if why else {}))  # fmt: skip
        if pause_s:
            await self._clock.sleep(pause_s)


class EarlyEnds:
    """The early ends in a row of one watch. `jitter` spreads the watches of a cluster that ended together.

    A watch that lived goes on at once; one that ends early or fails is opened ever more rarely (design#promise-6).
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self.in_a_row = 0

    def ended_early_s(self, *, has_told: bool = False, has_failed: bool = False) -> float:
        """Return the seconds until the next try; 0 after a first end in order. `has_told`: it had changes."""
        self.in_a_row = min(self.in_a_row + 1, EARLY_ENDS) if has_told else self.in_a_row + 1
        if self.in_a_row == 1 and not has_failed:
            return 0.0
        return timing.WATCH_BACK_OFF.pause_s(1 if has_told else self.in_a_row - (not has_failed), self._jitter)


_NAMESPACE: Final = GVK("", "v1", "Namespace")


class WatchKeeper:
    """Chooses the kinds to look at in each cluster, since a round that changes few objects rarely changes any."""

    def __init__(self, watches: Watches, polls: Polls) -> None:
        self._watches, self._polls = watches, polls
        self._chosen: Watches | Polls = watches
        self._placed: tuple[Schedule | None, Mapping[str, AbstractSet[GVK]]] = (None, {})
        self._applied: dict[str, tuple[object, frozenset[GVK]]] = {}

    def follow(self, schedule: Schedule, ledger: Ledger, members: Mapping[str, MemberCluster], *, anew: bool) -> None:
        """Watch or poll the relevant kinds in every member; unless `anew`, unchanged watches stay."""
        settings = schedule.fleet.settings
        if schedule is not self._placed[0]:
            self._placed = schedule, _placed_kinds(schedule)
        selector = our_label(fleet_names(settings))
        self._polls.every(settings.resync_s)
        chosen = self._polls if settings.drift_mode is DriftMode.POLL else self._watches
        if chosen is not self._chosen:
            for name in tuple(self._chosen.clusters):
                self.drop(name)
            self._chosen = chosen
        for name in self._chosen.clusters.keys() - members.keys():
            self.drop(name)
            self._applied.pop(name, None)
        is_polled = self._chosen is self._polls
        placed = frozenset().union(*self._placed[1].values())
        everywhere = placed if is_polled else frozenset()
        # In a cluster without our objects one kind is watched, to notice when it becomes unreachable.
        lookout = frozenset() if is_polled else frozenset({_NAMESPACE} if _NAMESPACE in placed else sorted(placed)[:1])
        for name, member in members.items():
            rows = ledger.get(name)
            counted, applied = self._applied.get(name, (None, frozenset()))
            if rows is not counted:
                applied = frozenset(row.gvk for row in rows.values()) if rows else frozenset()
                self._applied[name] = rows, applied
            kinds = applied.union(self._placed[1].get(name, ()), everywhere) or lookout
            known = self._chosen.clusters.get(name)
            if anew or known is None or known.member is not member or known.kinds != kinds:
                self._chosen.keep(member, kinds, selector)

    def drop(self, cluster: str) -> None:
        """Ask a cluster nothing until it is followed again."""
        self._chosen.drop(cluster)

    async def close(self) -> None:
        """Ask nothing any more."""
        await self._watches.close()
        await self._polls.close()


def _placed_kinds(schedule: Schedule) -> Mapping[str, AbstractSet[GVK]]:
    """Return the kinds that are placed in each cluster."""
    placed, templates = defaultdict[str, set[GVK]](set), schedule.fleet.templates
    for identity, binding in schedule.bindings.items():
        # What is placed without a template is a Namespace that follows what lives in it.
        gvk = templates[identity].gvk if identity in templates else GVK(identity.group, "v1", identity.kind)
        for target in binding.targets:
            placed[target.cluster].add(gvk)
    return placed
