"""SealedSecret of Sealed Secrets: a Secret that its controller alone can open."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.makers.readiness import by_condition
from reconciler.interpreters.reading import namespace_of, text
from reconciler.model.demand import Made
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: sealed-secrets: the Secret has the name of the SealedSecret, whatever is in spec.template.metadata."""
    name = text(dig(body, "metadata", "name"))
    return (Made(Identity("", "Secret", namespace_of(body), name)),) if name else ()


def _health(live: JsonObject) -> Health:
    """Healthy once Synced. Unhealthy when it cannot be opened, or a Secret of another owner is in its place."""
    return by_condition(live, "Synced")


INTERPRETER = Interpreter(kinds=(("bitnami.com", "SealedSecret"),), makes=_makes, health=_health)
