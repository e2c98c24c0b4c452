"""Which kinds are watched where: those of what is placed or was applied in a cluster, and no others.

A stream for each kind of the store in each cluster would be mostly of kinds that the cluster has nothing of. What
carries our mark where nothing of its kind is placed or recorded is found by the lists of the next round over
everything, as everything else that no event tells of. Source: design#events-are-nudges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.adapters.journal.mirror import Ledger
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.watches.placed_kinds import PlacedKinds
from reconciler.daemon.watches.watches import Watches
from reconciler.engine import Decision
from reconciler.model.fleet import FleetSettings
from reconciler.model.refs import GVK
from reconciler.stages.ownership import FLEET_LABEL

_NAMESPACE: Final = GVK("", "v1", "Namespace")


def our_label(settings: FleetSettings) -> str:
    """The label selector of what carries our mark, under any name that the fleet has had."""
    names = ",".join(name for name in (settings.name, *settings.previous_names) if name)
    return f"{FLEET_LABEL} in ({names})"


class WatchKeeper:
    """Remembers the kinds, since a round that changes few objects rarely changes any."""

    def __init__(self, watches: Watches) -> None:
        """Nothing is watched yet."""
        self._watches = watches
        self._placed = PlacedKinds()
        self._applied: dict[str, tuple[object, frozenset[GVK]]] = {}
        self._kept: dict[str, frozenset[GVK]] = {}

    def follow(self, decision: Decision, ledger: Ledger, members: Mapping[str, MemberCluster], *, anew: bool) -> None:
        """Watch the kinds that matter in every member, and nothing elsewhere.

        Unless `anew`, watches are left alone where the kinds are those of before.
        """
        settings = decision.fleet.settings
        self._placed.follow(decision)
        selector = our_label(settings)
        for name in self._kept.keys() - members.keys():
            self._watches.drop(name)
            del self._kept[name]
            self._applied.pop(name, None)
        lookout = self._lookout()
        for name, member in members.items():
            kinds = self._placed.of(name) | self._applied_in(name, ledger) or lookout
            if anew or kinds != self._kept.get(name):
                self._watches.keep(member, kinds, selector)
                self._kept[name] = kinds

    def _lookout(self) -> frozenset[GVK]:
        """What is watched where there is nothing of ours: one kind, so that a cluster that goes away is noticed."""
        kinds = self._placed.everywhere
        return frozenset({_NAMESPACE} if _NAMESPACE in kinds else sorted(kinds)[:1])

    def _applied_in(self, cluster: str, ledger: Ledger) -> frozenset[GVK]:
        rows = ledger.get(cluster)
        known, kinds = self._applied.get(cluster, (None, frozenset()))
        if rows is not known:
            kinds = frozenset(row.gvk for row in rows.values()) if rows else frozenset()
            self._applied[cluster] = rows, kinds
        return kinds
