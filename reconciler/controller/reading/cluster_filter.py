"""Changes of observations that matter to placement.

The clusters that a process applies to. Each process plans for the whole fleet. Source: design#parts; ADR 24.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import ClusterObservation, Listed, Observations, PendingPods, UnlistedCause, Workload
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.errors import ConfigurationError


def causes(seen: ClusterObservation) -> frozenset[tuple[Listed, UnlistedCause]]:
    """Return the failed lists with their causes; the words may differ from one time to the next."""
    return frozenset((found.what, found.cause) for found in seen.unlisted)


def is_news(seen: Observations, before: Observations) -> bool:
    """Return whether placement may change; the time of the observation does not matter."""
    return _placing(seen) != _placing(before)


def _placing(observations: Observations) -> dict[str, object]:
    """Return the inputs of placement, without the time of the observation."""
    return {
        name: replace(seen, observed_at="", workloads=_steady(seen), pending=_nameless(seen))
        for name, seen in observations.clusters.items()
    }


def _nameless(seen: ClusterObservation) -> tuple[PendingPods, ...]:
    """Pods that wait for a node, whichever they are."""
    return tuple(replace(group, names=()) for group in seen.pending)


def _steady(seen: ClusterObservation) -> dict[Identity, Workload]:
    """Workloads without what changes while pods come and go; ticks read the rest."""
    return {
        identity: Workload(
            gvk=found.gvk,
            identity=identity,
            replicas=found.replicas,
            assigned=found.assigned,
            missing=found.missing,
            of_fleet=found.of_fleet,
        )
        for identity, found in seen.workloads.items()
    }


def pulling(fleet: Fleet) -> frozenset[str]:
    """Return the clusters with a process of their own: the main process leaves them alone."""
    return frozenset([name for name, cluster in fleet.clusters.items() if cluster.pulls])


class ClusterFilter(Struct, frozen=True):
    """The clusters that a process applies to. `chosen`: these; empty: all but those with a process of their own."""

    chosen: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Return whether this process schedules for the fleet: it runs ticks, and its placements are active."""
        return not self.chosen

    def own(self, fleet: Fleet) -> frozenset[str]:
        """The clusters of the fleet that this process applies to."""
        return frozenset(fleet.clusters) & self.chosen if self.chosen else frozenset(fleet.clusters) - pulling(fleet)

    def elsewhere(self, fleet: Fleet) -> frozenset[str]:
        """The other clusters of the fleet."""
        return frozenset(fleet.clusters) - self.own(fleet)

    def cut(self, fleet: Fleet) -> Fleet:
        """Return the fleet without the clusters of others, for tasks that ask each cluster and place nothing."""
        own = self.own(fleet)
        return replace(fleet, clusters={name: found for name, found in fleet.clusters.items() if name in own})

    def check(self, fleet: Fleet) -> None:
        """Raise unless the fleet has the chosen clusters.

        Raises:
            ConfigurationError: it has no such cluster.
        """
        unknown = ", ".join(sorted(self.chosen - fleet.clusters.keys()))
        if unknown:
            there = ", ".join(sorted(fleet.clusters)) or "none"
            raise ConfigurationError(f"--cluster {unknown}: the store has no such Cluster document; it has {there}")
