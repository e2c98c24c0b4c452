"""ListenerSet, and XListenerSet as it was called while it was experimental."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.gateway.listeners import (
    issuer_mentions,
    listener_mentions,
    made_for_listeners,
    told_with_listeners,
)
from reconciler.interpreters.gateway.references import GROUP, as_dependencies
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Gateway API: the certificates of its listeners; the Gateway that they join is shared."""
    return as_dependencies((*listener_mentions(body), *issuer_mentions(body)), body)


def _health(live: JsonObject) -> Health:
    """Healthy when it is Accepted and Programmed, with every listener.

    Source: Gateway API: ListenerSetStatus.
    """
    return told_with_listeners(live).health


def _why(live: JsonObject) -> str:
    return told_with_listeners(live).why


INTERPRETER = Interpreter(
    kinds=((GROUP, "ListenerSet"), ("gateway.networking.x-k8s.io", "XListenerSet")),
    dependencies=_dependencies,
    makes=made_for_listeners,
    health=_health,
    why=_why,
)
