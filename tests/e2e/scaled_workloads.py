"""Deployments, what scales them, and who moved their replicas as the audit log of a cluster has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.real_clusters import RealCluster


def autoscaler(namespace: str, target: str, least: int, most: int = 20) -> dict[str, Any]:
    """A HorizontalPodAutoscaler; without metrics it does nothing but keep its bounds."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    busy = {"type": "Utilization", "averageUtilization": 50}
    spec = {"scaleTargetRef": reference, "minReplicas": least, "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": busy}}]}  # fmt: skip
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": target, "namespace": namespace}, "spec": spec}  # fmt: skip


def scale(cluster: RealCluster, namespace: str, name: str, replicas: int, manager: str) -> None:
    """Write the scale subresource, as KEDA does for 0 and 1 and `kubectl scale` always."""
    patch = json.dumps({"spec": {"replicas": replicas}})
    cluster.kubectl("patch", "deployment", name, "-n", namespace, "--subresource=scale", "--type=merge",
                    f"--field-manager={manager}", "-p", patch)  # fmt: skip


class ReplicaMoves:
    """Every write that changed `spec.replicas` of a Deployment since a mark, in the order of the cluster."""

    def __init__(self, cluster: RealCluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._since = cluster.mark()

    def of(self, name: str) -> list[tuple[str, int, int]]:
        """(`us` or the other's User-Agent, replicas before, replicas after)."""
        writes = [event for event in self._cluster.writes(self._since) if self._is_about(event, name)]
        writes.sort(key=lambda event: int(event["responseObject"]["metadata"]["resourceVersion"]))
        moves = []
        before: int | None = None
        for event in writes:
            after = int(event["responseObject"]["spec"].get("replicas", 0))
            if before is not None and after != before:
                agent = event["userAgent"]
                moves.append(("us" if agent.startswith("fleet-reconciler/") else agent.split("/")[0], before, after))
            before = after
        return moves

    def by_us(self, name: str) -> list[tuple[int, int]]:
        """Return our moves: (before, after)."""
        return [(before, after) for who, before, after in self.of(name) if who == "us"]

    def _is_about(self, event: Mapping[str, Any], name: str) -> bool:
        reference = event.get("objectRef", {})
        is_it = (reference.get("resource"), reference.get("namespace"), reference.get("name")) == (
            "deployments", self._namespace, name)  # fmt: skip
        is_it = is_it and "dryRun" not in event["requestURI"]
        return is_it and event.get("responseStatus", {}).get("code", 500) < 300 and "responseObject" in event
