"""ReferenceGrants, pod selectors of Services and budgets, and fronts of Services: Ingresses, routes, TLS policies.

A namespace lets objects of other namespaces refer to its own. The grant stands in the namespace that is referred to,
and without it the reference is refused. So it decides who may have a dependency in another namespace, and is one
itself.

Source: Gateway API: ReferenceGrant, routes by their backends, and by a Service as their parent in a mesh,
BackendTLSPolicy by its targets; Kubernetes, Ingress; design#grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.api.content import Json, dig
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Template
from reconciler.api.policies import Companion, LabelRequirement, LabelSelector, Operator
from reconciler.api.refs import Identity
from reconciler.containment import try_call
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.registry import Registry
from reconciler.templates import references_of

_GRANT: Final = ("gateway.networking.k8s.io", "ReferenceGrant")


def grants_place(ref: DependencyRef) -> tuple[str, str, str]:
    """Group, kind and namespace of the grants that may allow a reference."""
    return (*_GRANT, ref.identity.namespace)


def granting(ref: DependencyRef, grants: Iterable[Template]) -> tuple[Identity, ...]:
    """Those of the grants of a namespace that allow a reference."""
    return tuple(
        grant.identity
        for grant in grants
        if ref.granted_to in (_texts_of(one, "namespace") for _, one in mappings(dig(grant.body, "spec", "from")))
        and any(
            _texts_of(one) == ref.identity[:2] and text(one.get("name")) in ("", ref.identity.name)
            for _, one in mappings(dig(grant.body, "spec", "to"))
        )
    )


def _texts_of(entry: Mapping[str, Json], *more: str) -> tuple[str, ...]:
    return tuple(text(entry.get(field)) for field in ("group", "kind", *more))


def how(dependency: Identity, path: str) -> str:
    """Return how an owner uses a dependency, as the end of a sentence that begins with the owner."""
    return f"refers {'by' if dependency[:2] == _GRANT else 'to'} it in {path}"


def selected_by_labels(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a Service selects pods with these labels. Without a selector it selects none."""
    wanted = mapping(selector)
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


def selected_by_selector(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a label selector selects pods with these labels: an empty one all, a missing one none."""
    if not isinstance(selector, Mapping):
        return False
    if not selected_by_labels(labels, selector.get("matchLabels")) and mapping(selector.get("matchLabels")):
        return False
    requirements = []
    for _, expression in mappings(selector.get("matchExpressions")):
        operator, values = text(expression.get("operator")), expression.get("values")
        if operator not in tuple(Operator):
            return False
        given = frozenset(one for one in values if isinstance(one, str)) if isinstance(values, list) else frozenset()
        key = text(expression.get("key"))
        requirements.append(LabelRequirement(key=key, operator=Operator(operator), values=given))
    return LabelSelector(requirements=tuple(requirements)).matches(labels)


_GATEWAYS: Final = "gateway.networking.k8s.io"
_INGRESS: Final = ("networking.k8s.io", "Ingress")
_BACKEND_TLS: Final = (_GATEWAYS, "BackendTLSPolicy")

FRONTS: Final[Mapping[Companion, tuple[tuple[str, str], ...]]] = {
    Companion.INGRESSES: (_INGRESS,),
    Companion.ROUTES: (
        *((_GATEWAYS, kind) for kind in ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute")),
        _BACKEND_TLS,
    ),
}
"""Group and kind of each word of `fleet.reconciler/bring`."""


def services_behind(front: Template, interpreters: Registry) -> frozenset[str]:
    """Names of the Services of its own namespace that it leads to, or is about."""
    kind = front.identity[:2]
    if kind == _INGRESS:
        backends = [dig(front.body, "spec", "defaultBackend")]
        for _, rule in mappings(dig(front.body, "spec", "rules")):
            backends += [path.get("backend") for _, path in mappings(dig(rule, "http", "paths"))]
        return frozenset(name for backend in backends if (name := text(dig(backend, "service", "name"))))
    if kind == _BACKEND_TLS:
        services = (
            target
            for _, target in mappings(dig(front.body, "spec", "targetRefs"))
            if target.get("kind") == "Service" and not target.get("group")
        )
        return frozenset(text(service.get("name")) for service in services)
    refs = try_call(references_of, front, interpreters).value or ()
    place = ("", "Service", front.identity.namespace)
    return frozenset(ref.identity.name for ref in refs if ref.identity[:3] == place)


def why_in_front(front: Identity, service: str) -> str:
    """Return why it is placed with the pods behind a Service, as the end of the sentence "it …"."""
    return f"it {'is about' if front[:2] == _BACKEND_TLS else 'leads to'} Service {service}"
