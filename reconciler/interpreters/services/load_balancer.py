"""The address that a load balancer gave, for Service and Ingress."""

from __future__ import annotations

from reconciler.interpreters.reading import mappings
from reconciler.model.tree import JsonObject, dig


def has_address(live: JsonObject) -> bool:
    """Return whether an entry of status.loadBalancer.ingress has a hostname or an IP address."""
    entries = mappings(dig(live, "status", "loadBalancer", "ingress"))
    return any(entry.get("hostname") or entry.get("ip") for _, entry in entries)
