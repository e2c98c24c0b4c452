"""CustomResourceDefinition, Namespace, ServiceAccount and the kinds that limit others."""

from __future__ import annotations

from reconciler.api.clusters import Health
from reconciler.api.content import JsonObject, dig
from reconciler.kinds.body_fields import condition, count, is_observed, mapping
from reconciler.kinds.interpreter import Interpreter


def _definition_health(live: JsonObject) -> Health:
    """Healthy once Established, when its resources can be written; Unhealthy when its names are taken."""
    if condition(live, "Established").get("status") == "True":
        return Health.HEALTHY
    is_refused = condition(live, "NamesAccepted").get("status") == "False"
    return Health.UNHEALTHY if is_refused else Health.PROGRESSING


CUSTOM_RESOURCE_DEFINITION = Interpreter(
    kinds=(("apiextensions.k8s.io", "CustomResourceDefinition"),), namespaced=False, health=_definition_health
)


def _namespace_health(live: JsonObject) -> Health:
    """A Namespace that is being deleted accepts nothing: Progressing until it is created again."""
    return Health.PROGRESSING if dig(live, "status", "phase") == "Terminating" else Health.HEALTHY


NAMESPACE = Interpreter(kinds=(("", "Namespace"),), namespaced=False, health=_namespace_health)


SERVICE_ACCOUNT = Interpreter(kinds=(("", "ServiceAccount"),))
LIMIT_RANGE = Interpreter(kinds=(("", "LimitRange"),))
RESOURCE_QUOTA = Interpreter(kinds=(("", "ResourceQuota"),))


def _budget_health(live: JsonObject) -> Health:
    """Source: Karmada: healthy when currentHealthy is at least desiredHealthy."""
    if not is_observed(live):
        return Health.PROGRESSING
    status = mapping(live.get("status"))
    is_met = count(status.get("currentHealthy"), 0) >= count(status.get("desiredHealthy"), 0)
    return Health.HEALTHY if is_met else Health.UNHEALTHY


POD_DISRUPTION_BUDGET = Interpreter(kinds=(("policy", "PodDisruptionBudget"),), health=_budget_health)
