"""Changes of observations that matter to placement."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.clusters import ClusterObservation, Listed, Observations, PendingPods, UnlistedCause, Workload
from reconciler.api.refs import Identity


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
