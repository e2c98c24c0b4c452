"""Gateway."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.gateway.listeners import (
    issuer_mentions,
    listener_mentions,
    made_for_listeners,
    told_with_listeners,
)
from reconciler.interpreters.gateway.references import (
    GATEWAY,
    SECRET,
    UNNAMED,
    Mention,
    as_dependencies,
    mentions,
    mentions_in,
)
from reconciler.interpreters.reading import mappings, namespace_of
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig

_FRONTEND = ("spec", "tls", "frontend")
_AUTHORITIES = ("validation", "caCertificateRefs")


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return certificates, client authorities and parameters; not its class. Source: Gateway API.

    A GatewayClass is installed in a cluster, as an IngressClass is.
    """
    return as_dependencies(_mentions(body), body)


def _mentions(body: JsonObject) -> Iterator[Mention]:
    yield from listener_mentions(body)
    yield from issuer_mentions(body)
    yield from mentions(body, SECRET, "spec", "tls", "backend", "clientCertificateRef")
    yield from mentions(body, SECRET, "spec", "backendTLS", "clientCertificateRef")
    yield from mentions(body, UNNAMED, *_FRONTEND, "default", *_AUTHORITIES)
    for index, port in mappings(dig(body, *_FRONTEND, "perPort")):
        at = (*_FRONTEND, "perPort", index, "tls", *_AUTHORITIES)
        yield from mentions_in(dig(port, "tls", *_AUTHORITIES), UNNAMED, namespace_of(body), at)
    yield from mentions(body, UNNAMED, "spec", "infrastructure", "parametersRef")


def _health(live: JsonObject) -> Health:
    """Healthy when it is Accepted and Programmed, with every listener; Progressing while it waits for an address.

    Source: Gateway API: GatewayStatus, ListenerStatus.
    """
    return told_with_listeners(live).health


def _why(live: JsonObject) -> str:
    return told_with_listeners(live).why


INTERPRETER = Interpreter(
    kinds=(GATEWAY,),
    dependencies=_dependencies,
    makes=made_for_listeners,
    health=_health,
    why=_why,
)
