"""Routes of the Gateway API to backends, the references between its objects, and the defaults of missing fields.

Source: Gateway API: BackendObjectReference, SecretObjectReference, ParentReference, LocalObjectReference, and
ReferenceGrant for objects in another namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from reconciler.api.clusters import Health
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import DependencyRef
from reconciler.api.problem import dotted
from reconciler.api.refs import GVK, Identity
from reconciler.kinds.body_fields import mapping, mappings, namespace_of, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.status_conditions import ReportedHealth, by_reports, told_by

GROUP: Final = "gateway.networking.k8s.io"

SERVICE: Final = ("", "Service")
SECRET: Final = ("", "Secret")
GATEWAY: Final = (GROUP, "Gateway")
UNNAMED: Final = ("", "")
"""Default of a reference that has to have its group and kind."""


class ReferenceField(NamedTuple):
    """One field that names an object."""

    identity: Identity
    steps: tuple[Step, ...]


def reference_identity(given: Json, default: tuple[str, str], namespace: str) -> Identity:
    """Return the identity of a reference, its name empty when absent; `default`: group and kind if neither is given."""
    found = mapping(given)
    group = text(found.get("group")) if "group" in found else default[0]
    kind = text(found.get("kind")) or default[1]
    return Identity(group, kind, text(found.get("namespace")) or namespace, text(found.get("name")))


def mentions(body: JsonObject, default: tuple[str, str], *steps: str) -> Iterator[ReferenceField]:
    """The reference at a field, or each of a list of references."""
    given = dig(body, *steps)
    if isinstance(given, list):
        yield from mentions_in(given, default, namespace_of(body), steps)
    elif mapping(given):
        yield ReferenceField(reference_identity(given, default, namespace_of(body)), (*steps, "name"))


def mentions_in(
    given: Json, default: tuple[str, str], namespace: str, at: tuple[Step, ...]
) -> Iterator[ReferenceField]:
    """Each reference of a list; `at`: the steps to the list."""
    for index, reference in mappings(given):
        yield ReferenceField(reference_identity(reference, default, namespace), (*at, index, "name"))


def as_dependencies(found: Iterable[ReferenceField], body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return one dependency for each object, by the first field that names it, sorted.

    An object in another namespace counts if a grant of that namespace allows it; an owner without a namespace belongs
    to an administrator and needs no grant.
    """
    own = namespace_of(body)
    kind = GVK.parse(text(body.get("apiVersion")), text(body.get("kind"))).group_kind
    refs: dict[Identity, DependencyRef] = {}
    for identity, steps in found:
        if identity.name and identity.kind and identity not in refs:
            granted_to = (*kind, own) if own and identity.namespace != own else ()
            refs[identity] = DependencyRef(identity=identity, path=dotted(steps), granted_to=granted_to)
    return tuple([refs[identity] for identity in sorted(refs)])


_FILTERS = (("requestMirror", "backendRef"), ("externalAuth", "backendRef"))


def _mentions(body: JsonObject) -> Iterator[ReferenceField]:
    """Yield backends of rules and filters, extensions, a Service as the parent; not Gateways. Source: Gateway API.

    A Gateway is shared, and asks for a load balancer in each cluster: its operator places it. A Service of another
    namespace as the parent needs no grant, but is no dependency of its route.
    """
    namespace = namespace_of(body)
    parents = mentions_in(dig(body, "spec", "parentRefs"), GATEWAY, namespace, ("spec", "parentRefs"))
    yield from (parent for parent in parents if parent.identity[:3] == (*SERVICE, namespace))
    for index, rule in mappings(dig(body, "spec", "rules")):
        at = ("spec", "rules", index)
        yield from _of_filters(rule.get("filters"), namespace, (*at, "filters"))
        yield from mentions_in(rule.get("backendRefs"), SERVICE, namespace, (*at, "backendRefs"))
        for number, backend in mappings(rule.get("backendRefs")):
            yield from _of_filters(backend.get("filters"), namespace, (*at, "backendRefs", number, "filters"))


def _of_filters(filters: Json, namespace: str, at: tuple[Step, ...]) -> Iterator[ReferenceField]:
    for index, found in mappings(filters):
        for steps in _FILTERS:
            if reference := mapping(dig(found, *steps)):
                yield ReferenceField(reference_identity(reference, SERVICE, namespace), (*at, index, *steps, "name"))
        if reference := mapping(found.get("extensionRef")):
            field = (*at, index, "extensionRef", "name")
            yield ReferenceField(reference_identity(reference, UNNAMED, namespace), field)


def _of_parents(live: JsonObject) -> Iterator[ReportedHealth]:
    """Healthy when each of its parents accepts it and finds its backends; Unhealthy when one of them does not.

    A parent may have several controllers. Without one that answers it is Progressing, as an Ingress without an address
    is.

    Source: Gateway API: RouteParentStatus.
    """
    namespace = namespace_of(live)
    said: dict[tuple[Any, ...], list[Json]] = {}
    for _, entry in mappings(dig(live, "status", "parents")):
        said.setdefault(_place(entry.get("parentRef"), namespace), []).append(entry.get("conditions"))
    for _, parent in mappings(dig(live, "spec", "parentRefs")):
        identity, section, port = _place(parent, namespace)
        parts = ", ".join(filter(None, (section, f"port {port}" if port is not None else "")))
        who = f"{identity} ({parts})" if parts else str(identity)
        answers = said.get(_place(parent, namespace))
        if not answers:
            yield ReportedHealth(Health.PROGRESSING, f"{who} has not answered yet")
        for conditions in answers or ():
            yield told_by(who, conditions, live, ("Accepted",))


def _place(parent: Json, namespace: str) -> tuple[Any, ...]:
    """Return the normal form of a ParentReference: equal parents may be spelled with or without defaults."""
    found = mapping(parent)
    port = found.get("port")
    return (
        reference_identity(found, GATEWAY, namespace),
        text(found.get("sectionName")),
        port if isinstance(port, int) else None,
    )


GATEWAY_ROUTE = Interpreter(
    kinds=tuple((GROUP, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")),
    dependencies=lambda body: as_dependencies(_mentions(body), body),
    **by_reports(_of_parents),
)
