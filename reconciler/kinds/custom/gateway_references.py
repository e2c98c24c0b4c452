"""References between objects of the Gateway API, and the defaults of their missing fields.

Source: Gateway API: BackendObjectReference, SecretObjectReference, ParentReference, LocalObjectReference, and
ReferenceGrant for objects in another namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from reconciler.api.demand import DependencyRef
from reconciler.api.problem import dotted
from reconciler.api.refs import GVK, Identity
from reconciler.api.tree import Json, JsonObject, Step, dig
from reconciler.kinds.body_fields import mapping, mappings, namespace_of, text

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


def named(given: Json, default: tuple[str, str], namespace: str) -> Identity:
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
        yield ReferenceField(named(given, default, namespace_of(body)), (*steps, "name"))


def mentions_in(
    given: Json, default: tuple[str, str], namespace: str, at: tuple[Step, ...]
) -> Iterator[ReferenceField]:
    """Each reference of a list; `at`: the steps to the list."""
    for index, reference in mappings(given):
        yield ReferenceField(named(reference, default, namespace), (*at, index, "name"))


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
