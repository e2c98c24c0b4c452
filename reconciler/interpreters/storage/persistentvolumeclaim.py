"""PersistentVolumeClaim."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _health(live: JsonObject) -> Health:
    """Source: Karmada: healthy when Bound. Pending is Progressing: with WaitForFirstConsumer it waits for a pod."""
    match dig(live, "status", "phase"):
        case "Bound":
            return Health.HEALTHY
        case "Lost":
            return Health.UNHEALTHY
        case _:
            return Health.PROGRESSING


INTERPRETER = Interpreter(kinds=(("", "PersistentVolumeClaim"),), health=_health)
