"""ServiceImport: the consumer's side of a multi-cluster Service."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import namespace_of, text
from reconciler.model.demand import DependencyRef
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig

_SERVICE_NAME: Final = "kubernetes.io/service-name"


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Karmada: the Service `derived-NAME` and the EndpointSlices that are labelled with it."""
    name = text(dig(body, "metadata", "name"))
    if not name:
        return ()
    namespace, derived = namespace_of(body), f"derived-{name}"
    service = Identity("", "Service", namespace, derived)
    slices = Identity("discovery.k8s.io", "EndpointSlice", namespace, "")
    return (
        DependencyRef(identity=service, path="metadata.name"),
        DependencyRef(identity=slices, path="metadata.name", optional=True, labels=((_SERVICE_NAME, derived),)),
    )


INTERPRETER = Interpreter(kinds=(("multicluster.x-k8s.io", "ServiceImport"),), dependencies=_dependencies)
