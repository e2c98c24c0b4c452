"""Fronts of Services: Ingresses, and the routes of the Gateway API with their settings for Services.

Source: Kubernetes, Ingress; Gateway API: routes by their backends, and by a Service as their parent in a mesh;
BackendTLSPolicy by its targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.containment import contained
from reconciler.interpreters.reading import mappings, text
from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Template
from reconciler.model.policy import Companion
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.templates import references_of

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
        return _backends_of(front.body)
    if kind == _BACKEND_TLS:
        return _targets_of(front.body)
    refs = contained(references_of, front, interpreters).value or ()
    place = ("", "Service", front.identity.namespace)
    return frozenset(ref.identity.name for ref in refs if ref.identity[:3] == place)


def why_in_front(front: Identity, service: str) -> str:
    """Return why it is placed with the pods behind a Service, as the end of the sentence "it …"."""
    return f"it {'is about' if front[:2] == _BACKEND_TLS else 'leads to'} Service {service}"


def _backends_of(ingress: JsonObject) -> frozenset[str]:
    backends = [dig(ingress, "spec", "defaultBackend")]
    for _, rule in mappings(dig(ingress, "spec", "rules")):
        backends += [path.get("backend") for _, path in mappings(dig(rule, "http", "paths"))]
    return frozenset(name for backend in backends if (name := text(dig(backend, "service", "name"))))


def _targets_of(policy: JsonObject) -> frozenset[str]:
    services = (
        target
        for _, target in mappings(dig(policy, "spec", "targetRefs"))
        if target.get("kind") == "Service" and not target.get("group")
    )
    return frozenset(text(service.get("name")) for service in services)
