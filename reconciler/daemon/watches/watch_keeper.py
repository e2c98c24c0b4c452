"""Which kinds are watched where: those of the store everywhere, and in each cluster those that were applied there."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.adapters.journal.mirror import Ledger
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.watches.watches import Watches
from reconciler.model.fleet import Fleet
from reconciler.model.refs import GVK
from reconciler.stages.incremental import changed_keys
from reconciler.stages.ownership import FLEET_LABEL


class WatchKeeper:
    """Remembers the kinds, since a round that changes few objects rarely changes any."""

    def __init__(self, watches: Watches) -> None:
        """Nothing is watched yet."""
        self._watches = watches
        self._fleet: Fleet | None = None
        self._written: frozenset[GVK] = frozenset()
        self._applied: dict[str, tuple[object, frozenset[GVK]]] = {}
        self._kept: dict[str, frozenset[GVK]] = {}

    def follow(self, fleet: Fleet, ledger: Ledger, members: Mapping[str, MemberCluster], *, anew: bool) -> None:
        """Watch the kinds that matter in every member, and nothing elsewhere.

        Unless `anew`, watches are left alone where the kinds are those of before.
        """
        self._written = self._written_in(fleet)
        names = ",".join(name for name in (fleet.settings.name, *fleet.settings.previous_names) if name)
        for name in self._kept.keys() - members.keys():
            self._watches.drop(name)
            del self._kept[name]
            self._applied.pop(name, None)
        for name, member in members.items():
            kinds = self._written | self._applied_in(name, ledger)
            if anew or kinds != self._kept.get(name):
                self._watches.keep(member, kinds, f"{FLEET_LABEL} in ({names})")
                self._kept[name] = kinds

    def _written_in(self, fleet: Fleet) -> frozenset[GVK]:
        before, self._fleet = self._fleet, fleet
        if before is fleet:
            return self._written
        if before is not None:
            changed = changed_keys(before.templates, fleet.templates)
            gone = {found.gvk for identity in changed if (found := before.templates.get(identity))}
            come = {found.gvk for identity in changed if (found := fleet.templates.get(identity))}
            if gone <= come:
                return self._written | come
        return frozenset(template.gvk for template in fleet.templates.values())

    def _applied_in(self, cluster: str, ledger: Ledger) -> frozenset[GVK]:
        rows = ledger.get(cluster)
        known, kinds = self._applied.get(cluster, (None, frozenset()))
        if rows is not known:
            kinds = frozenset(row.gvk for row in rows.values()) if rows else frozenset()
            self._applied[cluster] = rows, kinds
        return kinds
