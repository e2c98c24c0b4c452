"""Namespace."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _health(live: JsonObject) -> Health:
    """A Namespace that is being deleted accepts nothing: Progressing until it is created again."""
    return Health.PROGRESSING if dig(live, "status", "phase") == "Terminating" else Health.HEALTHY


INTERPRETER = Interpreter(kinds=(("", "Namespace"),), namespaced=False, health=_health)
