"""Pod: it lands whole on one cluster."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.template import PodTemplate
from reconciler.interpreters.reading import condition
from reconciler.model.demand import Demand
from reconciler.model.observation import Health, Outcome
from reconciler.model.tree import JsonObject, dig

_TEMPLATE: Final = PodTemplate(())


def _demand(body: JsonObject) -> Demand:
    """Source: Karmada: a Pod is one replica that cannot be revised."""
    return Demand(replicas=1, shape=_TEMPLATE.shape(body), is_divisible=False)


def _health(live: JsonObject) -> Health:
    """Source: Karmada: a Pod is healthy when it has succeeded, or runs and is Ready."""
    phase = dig(live, "status", "phase")
    if phase is None:
        return Health.PROGRESSING
    is_ready = phase == "Running" and condition(live, "Ready").get("status") == "True"
    return Health.HEALTHY if is_ready or phase == "Succeeded" else Health.UNHEALTHY


def _outcome(live: JsonObject) -> Outcome:
    match dig(live, "status", "phase"):
        case "Succeeded":
            return Outcome.SUCCEEDED
        case "Failed":
            return Outcome.FAILED
        case _:
            return Outcome.RUNS


INTERPRETER = Interpreter(
    kinds=(("", "Pod"),),
    demand=_demand,
    dependencies=_TEMPLATE.dependencies,
    images=_TEMPLATE.images,
    containers=_TEMPLATE.containers,
    pod_template=_TEMPLATE.of,
    health=_health,
    outcome=_outcome,
)
