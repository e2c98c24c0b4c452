"""Observations of several who each see some of the clusters, as one. Source: ADR 21."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.binding import PreviousPlacement
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.refs import Identity


def put_together(found: Iterable[Observations]) -> Observations:
    """Return the union. If several have a cluster, the first counts, unless only a later one reached it."""
    clusters: dict[str, ClusterObservation] = {}
    previous: dict[Identity, PreviousPlacement] = {}
    constraints = []
    for each in found:
        for name, seen in each.clusters.items():
            known = clusters.get(name)
            if known is None or (seen.reachable and not known.reachable):
                clusters[name] = seen
        previous = {**each.previous, **previous}
        constraints += [constraint for constraint in each.constraints if constraint not in constraints]
    return Observations(
        clusters=dict(sorted(clusters.items())),
        constraints=tuple(constraints),
        previous=dict(sorted(previous.items())),
    )
