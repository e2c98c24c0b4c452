"""CustomResourceDefinition."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import condition
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def _health(live: JsonObject) -> Health:
    """Healthy once Established, when its resources can be written; Unhealthy when its names are taken."""
    if condition(live, "Established").get("status") == "True":
        return Health.HEALTHY
    is_refused = condition(live, "NamesAccepted").get("status") == "False"
    return Health.UNHEALTHY if is_refused else Health.PROGRESSING


INTERPRETER = Interpreter(
    kinds=(("apiextensions.k8s.io", "CustomResourceDefinition"),),
    namespaced=False,
    health=_health,
)
