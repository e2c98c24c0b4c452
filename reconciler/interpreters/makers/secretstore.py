"""SecretStore of the External Secrets Operator: where values come from, and how to log in there."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.makers.readiness import by_condition
from reconciler.interpreters.makers.selectors import EXTERNAL_SECRETS, credentials
from reconciler.interpreters.pods.references import as_dependencies
from reconciler.interpreters.reading import namespace_of
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Secrets, ConfigMaps and ServiceAccounts that any provider logs in with."""
    return as_dependencies(credentials(dig(body, "spec", "provider"), ("spec", "provider")), namespace_of(body))


def _health(live: JsonObject) -> Health:
    """Healthy once Ready; Unhealthy when its provider is not valid or does not let it in."""
    return by_condition(live, "Ready")


INTERPRETER = Interpreter(kinds=((EXTERNAL_SECRETS, "SecretStore"),), dependencies=_dependencies, health=_health)
