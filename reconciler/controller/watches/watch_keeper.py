"""The watched kinds of each cluster: those of placed or applied objects there, and no others.

In poll mode, nothing is watched, and lists of every placed kind serve the same purpose.

A stream for each kind of the store in each cluster would mostly be of kinds that the cluster has nothing of. An object
with our mark of a kind that is not placed or recorded there is found by the lists of the next round over everything, as
everything else without an event. Source: design#events-are-nudges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from reconciler.api.binding import Binding, TargetCluster
from reconciler.api.fleet import DriftMode, FleetSettings, Template
from reconciler.api.ledger import Ledger
from reconciler.api.refs import GVK, Identity
from reconciler.controller.watches.kind_watches import Watches
from reconciler.controller.watches.polls import Polls
from reconciler.incremental import changed_keys
from reconciler.kube.client import MemberCluster
from reconciler.ownership import FLEET_LABEL
from reconciler.scheduler import Schedule

_NAMESPACE: Final = GVK("", "v1", "Namespace")


def our_label(settings: FleetSettings) -> str:
    """Return the label selector of our mark, under any name that the fleet has had."""
    names = ",".join(name for name in (settings.name, *settings.previous_names) if name)
    return f"{FLEET_LABEL} in ({names})"


_Placed = tuple[GVK, tuple[TargetCluster, ...]]


class _Watching(Protocol):
    """A source of observations between rounds."""

    def keep(self, member: MemberCluster, kinds: frozenset[GVK], selector: str) -> None:
        """Look at exactly these kinds."""
        ...

    def drop(self, cluster: str) -> None:
        """Look at a cluster no more."""
        ...


class WatchKeeper:
    """Remembers the kinds, since a round that changes few objects rarely changes any."""

    def __init__(self, watches: Watches, polls: Polls) -> None:
        """Nothing is watched or polled yet."""
        self._watches, self._polls = watches, polls
        self._chosen: _Watching = watches
        self._placed = PlacedKinds()
        self._applied: dict[str, tuple[object, frozenset[GVK]]] = {}
        self._kept: dict[str, tuple[MemberCluster, frozenset[GVK]]] = {}

    def follow(self, decision: Schedule, ledger: Ledger, members: Mapping[str, MemberCluster], *, anew: bool) -> None:
        """Watch or poll the relevant kinds in every member, and nothing elsewhere.

        Unless `anew`, watches of unchanged kinds stay.
        """
        settings = decision.fleet.settings
        self._placed.follow(decision)
        selector = our_label(settings)
        self._choose(settings)
        for name in self._kept.keys() - members.keys():
            self.drop(name)
            self._applied.pop(name, None)
        is_polled = self._chosen is self._polls
        everywhere = self._placed.everywhere if is_polled else frozenset()
        lookout = frozenset() if is_polled else self._lookout()
        for name, member in members.items():
            kinds = self._placed.of(name) | self._applied_in(name, ledger) | everywhere or lookout
            if anew or (member, kinds) != self._kept.get(name):
                self._chosen.keep(member, kinds, selector)
                self._kept[name] = member, kinds

    def drop(self, cluster: str) -> None:
        """Ask a cluster nothing until it is followed again."""
        self._chosen.drop(cluster)
        self._kept.pop(cluster, None)

    def _choose(self, settings: FleetSettings) -> None:
        """Watch or poll, as the store sets it now; stop the other."""
        self._polls.every(settings.resync_s)
        chosen: _Watching = self._polls if settings.drift_mode is DriftMode.POLL else self._watches
        if chosen is self._chosen:
            return
        for name in self._kept:
            self._chosen.drop(name)
        self._chosen, self._kept = chosen, {}

    async def close(self) -> None:
        """Ask nothing any more."""
        await self._watches.close()
        await self._polls.close()

    def _lookout(self) -> frozenset[GVK]:
        """Return the kind to watch in a cluster without our objects: one, to notice when it becomes unreachable."""
        kinds = self._placed.everywhere
        return frozenset({_NAMESPACE} if _NAMESPACE in kinds else sorted(kinds)[:1])

    def _applied_in(self, cluster: str, ledger: Ledger) -> frozenset[GVK]:
        rows = ledger.get(cluster)
        known, kinds = self._applied.get(cluster, (None, frozenset()))
        if rows is not known:
            kinds = frozenset(row.gvk for row in rows.values()) if rows else frozenset()
            self._applied[cluster] = rows, kinds
        return kinds


class PlacedKinds:
    """Counts the objects of each kind in each cluster; only rescheduled ones are counted again."""

    def __init__(self) -> None:
        """Nothing is placed."""
        self._bindings: Mapping[Identity, Binding] = {}
        self._templates: Mapping[Identity, Template] = {}
        self._placed: dict[Identity, _Placed] = {}
        self._counts: dict[str, Counter[GVK]] = {}

    def follow(self, decision: Schedule) -> None:
        """Take over where everything goes now."""
        bindings, templates = decision.bindings, decision.fleet.templates
        changed = changed_keys(self._bindings, bindings) | changed_keys(self._templates, templates)
        self._bindings, self._templates = bindings, templates
        for identity in changed:
            before = self._placed.pop(identity, None)
            if before is not None:
                self._count(before, -1)
            binding, template = bindings.get(identity), templates.get(identity)
            if binding is not None and binding.targets:
                # What is placed without a template is a Namespace that follows what lives in it.
                gvk = template.gvk if template is not None else GVK(identity.group, "v1", identity.kind)
                placed = self._placed[identity] = (gvk, binding.targets)
                self._count(placed, 1)

    def of(self, cluster: str) -> frozenset[GVK]:
        """Return the kinds that are placed in a cluster."""
        return frozenset(self._counts.get(cluster, ()))

    @property
    def everywhere(self) -> frozenset[GVK]:
        """Return the kinds that are placed in any cluster."""
        return frozenset().union(*self._counts.values())

    def _count(self, placed: _Placed, number: int) -> None:
        gvk, targets = placed
        for cluster, _ in targets:
            counts = self._counts.setdefault(cluster, Counter())
            counts[gvk] += number
            if not counts[gvk]:
                del counts[gvk]
