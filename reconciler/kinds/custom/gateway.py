"""Kinds of the Gateway API but for routes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.clusters import Health
from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import Made
from reconciler.kinds.body_fields import mappings, namespace_of, text
from reconciler.kinds.certificate_issuers import annotated_issuer, gets_certificates
from reconciler.kinds.custom.gateway_routes import (
    GATEWAY,
    GROUP,
    SECRET,
    UNNAMED,
    mentions,
    mentions_in,
    parent_identity,
)
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import PodReference, as_dependencies, made_secrets
from reconciler.kinds.status_conditions import ReportedHealth, by_reports, told_by

_ITS_CONTROLLER = "its controller"
_CLIENT_AUTHORITIES = ("tls", "frontendValidation", "caCertificateRefs")


def listener_mentions(body: JsonObject) -> Iterator[PodReference]:
    """Certificates of listeners, and up to Gateway API 1.3 the authorities by which each checks its clients."""
    for index, listener in mappings(dig(body, "spec", "listeners")):
        at = ("spec", "listeners", index)
        certificates = ("tls", "certificateRefs")
        yield from mentions_in(dig(listener, *certificates), SECRET, (*at, *certificates))
        yield from mentions_in(dig(listener, *_CLIENT_AUTHORITIES), UNNAMED, (*at, *_CLIENT_AUTHORITIES))


def issuer_mentions(body: JsonObject) -> Iterator[PodReference]:
    """The Issuer of its namespace that an annotation names, which signs the certificates of listeners."""
    return (found for found in annotated_issuer(body) if not found.optional)


def made_for_listeners(body: JsonObject) -> tuple[Made, ...]:
    """Certificates that cert-manager makes.

    Source: cert-manager, "Annotated Gateway resource": Secrets of its own namespace, for listeners that name a host and
    terminate TLS.
    """
    if not gets_certificates(body):
        return ()
    names: list[str] = []
    for _, listener in mappings(dig(body, "spec", "listeners")):
        if text(listener.get("hostname")) and dig(listener, "tls", "mode") != "Passthrough":
            found = mentions_in(dig(listener, "tls", "certificateRefs"), SECRET, ())
            own = (ref for ref in found if ref.namespace in ("", namespace_of(body)))
            names += [ref.name for ref in own if (ref.group, ref.kind) == SECRET]
    return made_secrets(body, names)


def _with_listeners(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when it is Accepted and Programmed, with every listener; Progressing while it waits for an address.

    Source: Gateway API: GatewayStatus, ListenerSetStatus, ListenerStatus.
    """
    yield told_by(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted", "Programmed"))
    wanted = {text(listener.get("name")) for _, listener in mappings(dig(live, "spec", "listeners"))}
    for _, listener in mappings(dig(live, "status", "listeners")):
        name = text(listener.get("name"))
        if name in wanted:
            yield told_by(f"listener {name}: {_ITS_CONTROLLER}", listener.get("conditions"), live, ())


_FRONTEND = ("spec", "tls", "frontend")
_AUTHORITIES = ("validation", "caCertificateRefs")


def _mentions(body: JsonObject) -> Iterator[PodReference]:
    """Yield certificates, client authorities and parameters; not its class. Source: Gateway API.

    A GatewayClass is installed in a cluster, as an IngressClass is.
    """
    yield from listener_mentions(body)
    yield from issuer_mentions(body)
    yield from mentions(body, SECRET, "spec", "tls", "backend", "clientCertificateRef")
    yield from mentions(body, SECRET, "spec", "backendTLS", "clientCertificateRef")
    yield from mentions(body, UNNAMED, *_FRONTEND, "default", *_AUTHORITIES)
    for index, port in mappings(dig(body, *_FRONTEND, "perPort")):
        at = (*_FRONTEND, "perPort", index, "tls", *_AUTHORITIES)
        yield from mentions_in(dig(port, "tls", *_AUTHORITIES), UNNAMED, at)
    yield from mentions(body, UNNAMED, "spec", "infrastructure", "parametersRef")


GATEWAY_INTERPRETER = Interpreter(
    kinds=(GATEWAY,),
    dependencies=lambda body: as_dependencies(_mentions(body), body),
    makes=made_for_listeners,
    **by_reports(_with_listeners),
)


def _of_class(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when a controller accepts it; without one it is Progressing.

    Source: Gateway API: GatewayClassStatus.
    """
    yield told_by(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted",))


GATEWAY_CLASS = Interpreter(
    kinds=((GROUP, "GatewayClass"),),
    namespaced=False,
    # Source: Gateway API: spec.parametersRef, in any namespace or in none.
    dependencies=lambda body: as_dependencies(mentions(body, UNNAMED, "spec", "parametersRef"), body),
    **by_reports(_of_class),
)


LISTENER_SET = Interpreter(
    kinds=((GROUP, "ListenerSet"), ("gateway.networking.x-k8s.io", "XListenerSet")),
    # Source: Gateway API: the certificates of its listeners; the Gateway that they join is shared.
    dependencies=lambda body: as_dependencies((*listener_mentions(body), *issuer_mentions(body)), body),
    makes=made_for_listeners,
    **by_reports(_with_listeners),
)


def _of_ancestors(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when every Gateway in front of its Services accepts it; without one it is Progressing.

    Source: Gateway API: PolicyStatus, ancestors.
    """
    ancestors = [entry for _, entry in mappings(dig(live, "status", "ancestors"))]
    if not ancestors:
        yield ReportedHealth(Health.PROGRESSING, "no Gateway has answered yet")
    for entry in ancestors:
        who = str(parent_identity(entry.get("ancestorRef"), namespace_of(live)))
        yield told_by(who, entry.get("conditions"), live, ("Accepted",))


BACKEND_TLS_POLICY = Interpreter(
    kinds=((GROUP, "BackendTLSPolicy"),),
    # Source: Gateway API: the authorities that it trusts; not the Service, which it is attached to.
    dependencies=lambda body: as_dependencies(mentions(body, UNNAMED, "spec", "validation", "caCertificateRefs"), body),
    **by_reports(_of_ancestors),
)


# It has no status: it holds from when it is there.
REFERENCE_GRANT = Interpreter(kinds=((GROUP, "ReferenceGrant"),))
