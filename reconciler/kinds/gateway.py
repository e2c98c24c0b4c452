"""Kinds of the Gateway API, the references between its objects, and the defaults of missing fields.

Source: Gateway API: BackendObjectReference, SecretObjectReference, ParentReference, LocalObjectReference, and
ReferenceGrant for objects in another namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reconciler.api.clusters import Health
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import Made
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import ReportedHealth, by_reports, mapping, mappings, namespace_of, reported_by, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import (
    PodReference,
    annotated_issuer,
    as_dependencies,
    gets_certificates,
    made_secrets,
)

GROUP: Final = "gateway.networking.k8s.io"

SERVICE: Final = ("", "Service")
SECRET: Final = ("", "Secret")
_GATEWAY_KIND: Final = (GROUP, "Gateway")
UNNAMED: Final = ("", "")
"""Default of a reference that has to have its group and kind."""


def reference(ref: Json, default: tuple[str, str], steps: tuple[Step, ...]) -> PodReference:
    """Return a reference, its name empty when absent; `default`: group and kind if neither is given."""
    fields = mapping(ref)
    group = text(fields.get("group")) if "group" in fields else default[0]
    kind, name, namespace = (text(fields.get(part)) for part in ("kind", "name", "namespace"))
    return PodReference(kind or default[1], name, (*steps, "name"), group=group, namespace=namespace)


def parent_identity(ref: Json, namespace: str) -> Identity:
    """Return the identity of a ParentReference in an object of a namespace: a Gateway unless it says otherwise."""
    parent = reference(ref, _GATEWAY_KIND, ())
    return Identity(parent.group, parent.kind, parent.namespace or namespace, parent.name)


def mentions(body: JsonObject, default: tuple[str, str], *steps: str) -> Iterator[PodReference]:
    """The reference at a field, or each of a list of references."""
    refs = dig(body, *steps)
    if isinstance(refs, list):
        yield from mentions_in(refs, default, steps)
    elif mapping(refs):
        yield reference(refs, default, steps)


def mentions_in(refs: Json, default: tuple[str, str], at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Each reference of a list; `at`: the steps to the list."""
    for index, ref in mappings(refs):
        yield reference(ref, default, (*at, index))


_FILTERS = (("requestMirror", "backendRef"), ("externalAuth", "backendRef"))


def _route_mentions(body: JsonObject) -> Iterator[PodReference]:
    """Yield backends of rules and filters, extensions, a Service as the parent; not Gateways. Source: Gateway API.

    A Gateway is shared, and asks for a load balancer in each cluster: its operator places it. A Service of another
    namespace as the parent needs no grant, but is no dependency of its route.
    """
    own = ("", namespace_of(body))
    parents = mentions_in(dig(body, "spec", "parentRefs"), _GATEWAY_KIND, ("spec", "parentRefs"))
    yield from (parent for parent in parents if (parent.group, parent.kind) == SERVICE and parent.namespace in own)
    for index, rule in mappings(dig(body, "spec", "rules")):
        at = ("spec", "rules", index)
        yield from _of_filters(rule.get("filters"), (*at, "filters"))
        yield from mentions_in(rule.get("backendRefs"), SERVICE, (*at, "backendRefs"))
        for number, backend in mappings(rule.get("backendRefs")):
            yield from _of_filters(backend.get("filters"), (*at, "backendRefs", number, "filters"))


def _of_filters(filters: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    for index, entry in mappings(filters):
        for steps in _FILTERS:
            if ref := mapping(dig(entry, *steps)):
                yield reference(ref, SERVICE, (*at, index, *steps))
        if ref := mapping(entry.get("extensionRef")):
            yield reference(ref, UNNAMED, (*at, index, "extensionRef"))


def _of_parents(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when each of its parents accepts it and finds its backends; Unhealthy when one of them does not.

    A parent may have several controllers. Without one that answers it is Progressing, as an Ingress without an address
    is.

    Source: Gateway API: RouteParentStatus.
    """
    namespace = namespace_of(live)
    by_parent: dict[tuple[Any, ...], list[Json]] = {}
    for _, entry in mappings(dig(live, "status", "parents")):
        by_parent.setdefault(_place(entry.get("parentRef"), namespace), []).append(entry.get("conditions"))
    for _, parent in mappings(dig(live, "spec", "parentRefs")):
        identity, section, port = _place(parent, namespace)
        parts = ", ".join(filter(None, (section, f"port {port}" if port is not None else "")))
        who = f"{identity} ({parts})" if parts else str(identity)
        answers = by_parent.get(_place(parent, namespace))
        if not answers:
            yield ReportedHealth(Health.PROGRESSING, f"{who} has not answered yet")
        for conditions in answers or ():
            yield reported_by(who, conditions, live, ("Accepted",))


def _place(parent: Json, namespace: str) -> tuple[Any, ...]:
    """Return the normal form of a ParentReference: equal parents may be spelled with or without defaults."""
    fields = mapping(parent)
    port = fields.get("port")
    return (
        parent_identity(fields, namespace),
        text(fields.get("sectionName")),
        port if isinstance(port, int) else None,
    )


ROUTE = Interpreter(
    kinds=tuple((GROUP, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")),
    dependencies=lambda body: as_dependencies(_route_mentions(body), body),
    **by_reports(_of_parents),
)

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
    return (issuer for issuer in annotated_issuer(body) if not issuer.optional)


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
            refs = mentions_in(dig(listener, "tls", "certificateRefs"), SECRET, ())
            own = (ref for ref in refs if ref.namespace in ("", namespace_of(body)))
            names += [ref.name for ref in own if (ref.group, ref.kind) == SECRET]
    return made_secrets(body, names)


def _with_listeners(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when it is Accepted and Programmed, with every listener; Progressing while it waits for an address.

    Source: Gateway API: GatewayStatus, ListenerSetStatus, ListenerStatus.
    """
    yield reported_by(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted", "Programmed"))
    wanted = {text(listener.get("name")) for _, listener in mappings(dig(live, "spec", "listeners"))}
    for _, listener in mappings(dig(live, "status", "listeners")):
        name = text(listener.get("name"))
        if name in wanted:
            yield reported_by(f"listener {name}: {_ITS_CONTROLLER}", listener.get("conditions"), live, ())


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


GATEWAY = Interpreter(
    kinds=(_GATEWAY_KIND,),
    dependencies=lambda body: as_dependencies(_mentions(body), body),
    makes=made_for_listeners,
    **by_reports(_with_listeners),
)


def _of_class(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when a controller accepts it; without one it is Progressing.

    Source: Gateway API: GatewayClassStatus.
    """
    yield reported_by(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted",))


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
        yield reported_by(who, entry.get("conditions"), live, ("Accepted",))


BACKEND_TLS_POLICY = Interpreter(
    kinds=((GROUP, "BackendTLSPolicy"),),
    # Source: Gateway API: the authorities that it trusts; not the Service, which it is attached to.
    dependencies=lambda body: as_dependencies(mentions(body, UNNAMED, "spec", "validation", "caCertificateRefs"), body),
    **by_reports(_of_ancestors),
)


# It has no status: it holds from when it is there.
REFERENCE_GRANT = Interpreter(kinds=((GROUP, "ReferenceGrant"),))
