"""Kinds of the Gateway API, the references between its objects, and the defaults of missing fields.

Source: Gateway API: BackendObjectReference, SecretObjectReference, ParentReference, LocalObjectReference, and
ReferenceGrant for objects in another namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.clusters import Health
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import MadeObject
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import is_on_its_way, is_stale, mapping, mappings, namespace_of, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.references import PodReference, annotated_issuer, gets_certificates, made_secrets

GROUP: Final = "gateway.networking.k8s.io"

SERVICE: Final = ("", "Service")
SECRET: Final = ("", "Secret")
ROUTES: Final = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")
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


def _of_filters(filters: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    for index, entry in mappings(filters):
        for steps in _FILTERS:
            if ref := mapping(dig(entry, *steps)):
                yield reference(ref, SERVICE, (*at, index, *steps))
        if ref := mapping(entry.get("extensionRef")):
            yield reference(ref, UNNAMED, (*at, index, "extensionRef"))


def _place(parent: Json, namespace: str) -> tuple[Any, ...]:
    """Return the normal form of a ParentReference: equal parents may be spelled with or without defaults."""
    fields = mapping(parent)
    port = fields.get("port")
    return (
        parent_identity(fields, namespace),
        text(fields.get("sectionName")),
        port if isinstance(port, int) else None,
    )


_ITS_CONTROLLER = "its controller"
_CLIENT_AUTHORITIES = ("tls", "frontendValidation", "caCertificateRefs")


_FRONTEND = ("spec", "tls", "frontend")
_AUTHORITIES = ("validation", "caCertificateRefs")


class ReportedHealth(NamedTuple):
    """Reported health, and its reason in words; empty if healthy."""

    health: Health
    why: str = ""


_GOOD: Final[Mapping[str, tuple[str, str]]] = {
    "Accepted": ("accepts it", "does not accept it"),
    "ResolvedRefs": ("finds what it refers to", "does not find what it refers to"),
    "Programmed": ("has set it up", "has not set it up"),
}
"""Conditions that should be true: words for an unreported and for a false one."""

_BAD: Final[Mapping[str, str]] = {
    "Conflicted": "finds it in conflict with another",
    "PartiallyInvalid": "leaves a part of it out",
}
"""Conditions that should be false or absent, with the words for a true one."""

_PASSING: Final = frozenset({"Pending", "Waiting", "AddressNotAssigned"})
"""Reasons of temporary states. An address may never come, as that of an Ingress may not."""


def _reports_of(who: str, conditions: Json, live: JsonObject, needed: tuple[str, ...]) -> Iterator[ReportedHealth]:
    """Yield the health from one controller; `who` begins the sentence. `needed`: conditions of a full answer."""
    entries = {text(entry.get("type")): entry for _, entry in mappings(conditions)}
    for kind, (right, wrong) in _GOOD.items():
        entry = entries.get(kind)
        if entry is None:
            if kind in needed:
                yield _waits(f"{who} has not said yet whether it {right}")
        elif is_stale(entry, live):
            yield _waits(f"{who} has not seen the newest spec yet")
        elif entry.get("status") == "False":
            passes = text(entry.get("reason")) in _PASSING
            yield ReportedHealth(Health.PROGRESSING if passes else Health.UNHEALTHY, f"{who} {wrong}{_detail(entry)}")
        elif entry.get("status") != "True":
            yield _waits(f"{who} has not said yet whether it {right}{_detail(entry)}")
    for kind, wrong in _BAD.items():
        entry = entries.get(kind)
        if entry is not None and entry.get("status") == "True" and not is_stale(entry, live):
            yield ReportedHealth(Health.UNHEALTHY, f"{who} {wrong}{_detail(entry)}")


def _waits(why: str) -> ReportedHealth:
    return ReportedHealth(Health.PROGRESSING, why)


def _detail(entry: Mapping[str, Any]) -> str:
    detail = ": ".join(filter(None, (text(entry.get("reason")), text(entry.get("message")))))
    return f" ({detail})" if detail else ""


class GatewayKind(Interpreter):
    """Kinds that have in their status what several controllers or listeners say.

    It is as well as the worst of them; Progressing while its status is about an older spec, and while it is deleted.
    """

    def reports(self, live: JsonObject) -> Iterator[ReportedHealth]:
        """Yield what each of them says."""
        raise NotImplementedError

    def health(self, live: JsonObject) -> Health:
        return self._worst_report(live).health

    def why(self, live: JsonObject) -> str:
        return self._worst_report(live).why

    def _worst_report(self, live: JsonObject) -> ReportedHealth:
        """Return the first that is Unhealthy, else the first that is Progressing, else Healthy."""
        if is_on_its_way(live):
            return ReportedHealth(Health.PROGRESSING)
        reports = list(self.reports(live))
        ranked = (one for health in (Health.UNHEALTHY, Health.PROGRESSING) for one in reports if one.health is health)
        return next(ranked, ReportedHealth(Health.HEALTHY))


class GatewayRoute(GatewayKind):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
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

    def reports(self, live: JsonObject) -> Iterator[ReportedHealth]:
        """Healthy when each of its parents accepts it and finds its backends; Unhealthy when one of them does not.

        A parent may have several controllers. Without one that answers it is Progressing, as an Ingress without an
        address is. Source: Gateway API: RouteParentStatus.
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
                yield from _reports_of(who, conditions, live, ("Accepted",))


class ListenerSet(GatewayKind):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Certificates of listeners, the Issuer that signs them, and their client authorities up to Gateway API 1.3.

        Source: Gateway API; the Gateway that they join is shared.
        """
        for index, listener in mappings(dig(body, "spec", "listeners")):
            at = ("spec", "listeners", index)
            certificates = ("tls", "certificateRefs")
            yield from mentions_in(dig(listener, *certificates), SECRET, (*at, *certificates))
            yield from mentions_in(dig(listener, *_CLIENT_AUTHORITIES), UNNAMED, (*at, *_CLIENT_AUTHORITIES))
        # The Issuer of its namespace that an annotation names.
        yield from (issuer for issuer in annotated_issuer(body) if not issuer.optional)

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: cert-manager, "Annotated Gateway resource".

        Secrets of its own namespace, for listeners that name a host and terminate TLS.
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

    def reports(self, live: JsonObject) -> Iterator[ReportedHealth]:
        """Healthy when it is Accepted and Programmed, with every listener; Progressing while it waits for an address.

        Source: Gateway API: GatewayStatus, ListenerSetStatus, ListenerStatus.
        """
        yield from _reports_of(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted", "Programmed"))
        wanted = {text(listener.get("name")) for _, listener in mappings(dig(live, "spec", "listeners"))}
        for _, listener in mappings(dig(live, "status", "listeners")):
            name = text(listener.get("name"))
            if name in wanted:
                yield from _reports_of(f"listener {name}: {_ITS_CONTROLLER}", listener.get("conditions"), live, ())


class Gateway(ListenerSet):
    """The Gateway: it has listeners of its own."""

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Yield certificates, client authorities and parameters; not its class. Source: Gateway API.

        A GatewayClass is installed in a cluster, as an IngressClass is.
        """
        yield from super().references(body)
        yield from mentions(body, SECRET, "spec", "tls", "backend", "clientCertificateRef")
        yield from mentions(body, SECRET, "spec", "backendTLS", "clientCertificateRef")
        yield from mentions(body, UNNAMED, *_FRONTEND, "default", *_AUTHORITIES)
        for index, port in mappings(dig(body, *_FRONTEND, "perPort")):
            at = (*_FRONTEND, "perPort", index, "tls", *_AUTHORITIES)
            yield from mentions_in(dig(port, "tls", *_AUTHORITIES), UNNAMED, at)
        yield from mentions(body, UNNAMED, "spec", "infrastructure", "parametersRef")


class GatewayClass(GatewayKind):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Gateway API: spec.parametersRef, in any namespace or in none."""
        return mentions(body, UNNAMED, "spec", "parametersRef")

    def reports(self, live: JsonObject) -> Iterator[ReportedHealth]:
        """Healthy when a controller accepts it; without one it is Progressing.

        Source: Gateway API: GatewayClassStatus.
        """
        yield from _reports_of(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted",))


class BackendTLSPolicy(GatewayKind):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Gateway API: the authorities that it trusts; not the Service, which it is attached to."""
        return mentions(body, UNNAMED, "spec", "validation", "caCertificateRefs")

    def reports(self, live: JsonObject) -> Iterator[ReportedHealth]:
        """Healthy when every Gateway in front of its Services accepts it; without one it is Progressing.

        Source: Gateway API: PolicyStatus, ancestors.
        """
        ancestors = [entry for _, entry in mappings(dig(live, "status", "ancestors"))]
        if not ancestors:
            yield ReportedHealth(Health.PROGRESSING, "no Gateway has answered yet")
        for entry in ancestors:
            who = str(parent_identity(entry.get("ancestorRef"), namespace_of(live)))
            yield from _reports_of(who, entry.get("conditions"), live, ("Accepted",))
