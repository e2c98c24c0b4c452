"""Service."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.services.load_balancer import has_address
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _health(live: JsonObject) -> Health:
    """Healthy, unless a load balancer has not given it an address yet.

    Source: Karmada: health of a Service. Without an address it is Progressing, not Unhealthy: that is the business of
    the cluster's load balancer controller, and many a Service of type LoadBalancer never gets one.
    """
    if dig(live, "spec", "type") != "LoadBalancer" or has_address(live):
        return Health.HEALTHY
    return Health.PROGRESSING


INTERPRETER = Interpreter(kinds=(("", "Service"),), health=_health)
