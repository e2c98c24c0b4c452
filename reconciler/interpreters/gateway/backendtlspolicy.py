"""BackendTLSPolicy: the TLS of a Gateway to the pods of a Service."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.gateway.conditions import Told, told_by, worst
from reconciler.interpreters.gateway.references import GATEWAY, GROUP, UNNAMED, as_dependencies, mentions, named
from reconciler.interpreters.kstatus import is_on_its_way
from reconciler.interpreters.reading import mappings, namespace_of
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Gateway API: the authorities that it trusts; not the Service, which it is attached to."""
    return as_dependencies(mentions(body, UNNAMED, "spec", "validation", "caCertificateRefs"), body)


def _told(live: JsonObject) -> Told:
    if is_on_its_way(live):
        return Told(Health.PROGRESSING)
    ancestors = [entry for _, entry in mappings(dig(live, "status", "ancestors"))]
    if not ancestors:
        return Told(Health.PROGRESSING, "no Gateway has answered yet")
    return worst(_of_ancestor(entry, live) for entry in ancestors)


def _of_ancestor(entry: JsonObject, live: JsonObject) -> Told:
    who = str(named(entry.get("ancestorRef"), GATEWAY, namespace_of(live)))
    return told_by(who, entry.get("conditions"), live, ("Accepted",))


def _health(live: JsonObject) -> Health:
    """Healthy when every Gateway in front of its Services accepts it; without one it is Progressing.

    Source: Gateway API: PolicyStatus, ancestors.
    """
    return _told(live).health


def _why(live: JsonObject) -> str:
    return _told(live).why


INTERPRETER = Interpreter(kinds=((GROUP, "BackendTLSPolicy"),), dependencies=_dependencies, health=_health, why=_why)
