"""Service."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import mapping
from reconciler.interpreters.server_fields import prune_server_fields
from reconciler.interpreters.services.load_balancer import has_address
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig, without


def _health(live: JsonObject) -> Health:
    """Healthy, unless a load balancer has not given it an address yet.

    Source: Karmada: health of a Service. Without an address it is Progressing, not Unhealthy: that is the business of
    the cluster's load balancer controller, and many a Service of type LoadBalancer never gets one.
    """
    if dig(live, "spec", "type") != "LoadBalancer" or has_address(live):
        return Health.HEALTHY
    return Health.PROGRESSING


def _sanitize(body: JsonObject) -> JsonObject:
    """Without the cluster's own addresses. Source: Karmada: clusterIP and clusterIPs go, unless it is headless."""
    pruned = prune_server_fields(body)
    spec = mapping(pruned.get("spec"))
    if "clusterIP" not in spec and "clusterIPs" not in spec:
        return pruned  # Most leave them to the cluster.
    address = spec.get("clusterIP")
    if address == "None" or (address is None and spec.get("clusterIPs") == ["None"]):
        return pruned
    return without(without(pruned, ("spec", "clusterIP")), ("spec", "clusterIPs"))


INTERPRETER = Interpreter(kinds=(("", "Service"),), health=_health, sanitize=_sanitize)
