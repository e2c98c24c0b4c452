"""The referee of moves on embedded clusters: at the moment a Deployment goes, another copy of it has to serve.

It reads the stores of the clusters, in the same moment in which the request of whoever deletes is carried out.
"""

from __future__ import annotations

from typing import Any

from reconciler.sim import FleetInABox

START_S = 3.0
"""Start-up time of pods, in the time of the clusters: moves have something to wait for."""


def serves(body: dict[str, Any] | None) -> bool:
    """Return whether all replicas of a Deployment's newest template are available, by its own cluster."""
    if body is None or body["metadata"].get("deletionTimestamp"):
        return False
    status, wanted = body.get("status", {}), body["spec"]["replicas"]
    is_observed = status.get("observedGeneration") == body["metadata"]["generation"]
    return bool(is_observed and min(status.get("availableReplicas", 0), status.get("updatedReplicas", 0)) >= wanted)


def others(box: FleetInABox, gone_from: str, name: str) -> dict[str, bool]:
    """The clusters that have the Deployment besides the one from which it goes, with whether it serves there."""
    found = {cluster: box[cluster].state.get("Deployment", "demo", name) for cluster in box.names}
    return {c: serves(body) for c, body in found.items() if c != gone_from and body is not None}
