"""ReferenceGrants: a namespace lets objects of other namespaces refer to its own.

Source: Gateway API: ReferenceGrant: it stands in the namespace that is referred to, and without it the reference is
refused; design#grants. So it decides who may have a dependency in another namespace, and is one itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.interpreters.reading import mappings, text
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Template
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity
from reconciler.model.tree import dig

_GRANT: Final = ("gateway.networking.k8s.io", "ReferenceGrant")


def grants_place(ref: DependencyRef) -> tuple[str, str, str]:
    """Group, kind and namespace of the grants that may allow a reference."""
    return (*_GRANT, ref.identity.namespace)


def granting(ref: DependencyRef, grants: Iterable[Template]) -> tuple[Identity, ...]:
    """Those of the grants of a namespace that allow a reference."""
    return tuple(grant.identity for grant in grants if _is_from(ref, grant) and _is_to(ref, grant))


def how(dependency: Identity, path: str) -> str:
    """Return how an owner uses a dependency, as the end of a sentence that begins with the owner."""
    return f"refers {'by' if dependency[:2] == _GRANT else 'to'} it in {path}"


def not_granted(owner: Template, ref: DependencyRef) -> Problem:
    """A warning about a reference that its namespace has not granted: every cluster refuses it."""
    message = (
        f"{owner.identity} refers to {ref.identity} in another namespace, and no ReferenceGrant there lets it, so it "
        f"does not travel with it; add one to the namespace {ref.identity.namespace}, or take the reference out"
    )
    return Problem(
        source=owner.source, path=ref.path, code="reference-not-granted", message=message, severity=Severity.WARNING
    )


def _is_from(ref: DependencyRef, grant: Template) -> bool:
    return any(
        (text(entry.get("group")), text(entry.get("kind")), text(entry.get("namespace"))) == ref.granted_to
        for _, entry in mappings(dig(grant.body, "spec", "from"))
    )


def _is_to(ref: DependencyRef, grant: Template) -> bool:
    return any(
        (text(entry.get("group")), text(entry.get("kind"))) == ref.identity[:2]
        and text(entry.get("name")) in ("", ref.identity.name)
        for _, entry in mappings(dig(grant.body, "spec", "to"))
    )
