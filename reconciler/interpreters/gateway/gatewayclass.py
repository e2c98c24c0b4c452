"""GatewayClass."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.gateway.conditions import Told, told_by
from reconciler.interpreters.gateway.references import GROUP, UNNAMED, as_dependencies, mentions
from reconciler.interpreters.kstatus import is_on_its_way
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Gateway API: spec.parametersRef, in any namespace or in none."""
    return as_dependencies(mentions(body, UNNAMED, "spec", "parametersRef"), body)


def _told(live: JsonObject) -> Told:
    if is_on_its_way(live):
        return Told(Health.PROGRESSING)
    return told_by("its controller", dig(live, "status", "conditions"), live, ("Accepted",))


def _health(live: JsonObject) -> Health:
    """Healthy when a controller accepts it; without one it is Progressing.

    Source: Gateway API: GatewayClassStatus.
    """
    return _told(live).health


def _why(live: JsonObject) -> str:
    return _told(live).why


INTERPRETER = Interpreter(
    kinds=((GROUP, "GatewayClass"),), namespaced=False, dependencies=_dependencies, health=_health, why=_why
)
