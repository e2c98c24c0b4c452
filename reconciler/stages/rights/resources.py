"""Resource names of kinds in paths and roles: `deployments` for a Deployment.

A CustomResourceDefinition has them for its own kind. Those of the Gateway API come with clusters as a rule, and not
with a store, so their names are known here.
"""

from __future__ import annotations

from typing import Final

from reconciler.model.fleet import Fleet
from reconciler.model.tree import dig
from reconciler.stages.documents import BUILT_IN, guessed_plural

_GATEWAY_API: Final = {
    ("gateway.networking.k8s.io", "BackendTLSPolicy"): "backendtlspolicies",
    ("gateway.networking.k8s.io", "Gateway"): "gateways",
    ("gateway.networking.k8s.io", "GatewayClass"): "gatewayclasses",
    ("gateway.networking.k8s.io", "GRPCRoute"): "grpcroutes",
    ("gateway.networking.k8s.io", "HTTPRoute"): "httproutes",
    ("gateway.networking.k8s.io", "ListenerSet"): "listenersets",
    ("gateway.networking.k8s.io", "ReferenceGrant"): "referencegrants",
    ("gateway.networking.k8s.io", "TCPRoute"): "tcproutes",
    ("gateway.networking.k8s.io", "TLSRoute"): "tlsroutes",
    ("gateway.networking.k8s.io", "UDPRoute"): "udproutes",
}


def resource_names(fleet: Fleet) -> dict[tuple[str, str], str]:
    """The plural of each (group, kind) that is built in, of the Gateway API, or that the store itself defines."""
    return {group_kind: guessed_plural(group_kind[1]) for group_kind in BUILT_IN} | _GATEWAY_API | _defined(fleet)


def _defined(fleet: Fleet) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for identity, template in fleet.templates.items():
        if identity[:2] != ("apiextensions.k8s.io", "CustomResourceDefinition"):
            continue
        paths = (("spec", "group"), ("spec", "names", "kind"), ("spec", "names", "plural"))
        group, kind, plural = (dig(template.body, *path) for path in paths)
        if isinstance(group, str) and isinstance(kind, str) and isinstance(plural, str):
            found[group, kind] = plural
    return found
