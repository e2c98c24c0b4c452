"""PodDisruptionBudget."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import count, is_observed, mapping
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def _health(live: JsonObject) -> Health:
    """Source: Karmada: healthy when currentHealthy is at least desiredHealthy."""
    if not is_observed(live):
        return Health.PROGRESSING
    status = mapping(live.get("status"))
    is_met = count(status.get("currentHealthy"), 0) >= count(status.get("desiredHealthy"), 0)
    return Health.HEALTHY if is_met else Health.UNHEALTHY


INTERPRETER = Interpreter(kinds=(("policy", "PodDisruptionBudget"),), health=_health)
