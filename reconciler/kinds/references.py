"""References from bodies to other objects, and the issuers and credentials that kinds name alike.

An issuer of certificates stands in `issuerRef` of a Certificate, or in annotations of objects that use one. Source:
cert-manager, API reference, ObjectReference; "Annotated Ingress resource".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import DependencyRef, MadeObject
from reconciler.api.problem import dotted
from reconciler.api.refs import GVK, Identity
from reconciler.kinds.body_fields import mapping, mappings, namespace_of, text

CERT_MANAGER: Final = "cert-manager.io"
SECRETS_STORE_GROUP: Final = "secrets-store.csi.x-k8s.io"
"""API groups, the second that of the Secrets Store CSI driver."""


class PodReference(NamedTuple):
    """One field that names an object. `namespace` empty: that of the object with the field."""

    kind: str
    name: str
    steps: tuple[Step, ...]
    optional: bool = False
    group: str = ""
    namespace: str = ""


def as_dependencies(mentions: Iterable[PodReference], body: JsonObject) -> tuple[DependencyRef, ...]:
    """One dependency for each object that is named, sorted; required when any mention requires it.

    An object in another namespace counts if a grant of that namespace allows it; an owner without a namespace belongs
    to an administrator and needs no grant.
    """
    dependencies: dict[Identity, DependencyRef] = {}
    own = namespace_of(body)
    for mention in mentions:
        if not mention.name or not mention.kind:
            continue
        identity = Identity(mention.group, mention.kind, mention.namespace or own, mention.name)
        known = dependencies.get(identity)
        if known is None or (known.optional and not mention.optional):
            granted_to: tuple[str, ...] = ()
            if own and identity.namespace != own:
                granted_to = (*GVK.parse(text(body.get("apiVersion")), text(body.get("kind"))).group_kind, own)
            dependencies[identity] = DependencyRef(
                identity=identity, path=dotted(mention.steps), optional=mention.optional, granted_to=granted_to
            )
    return tuple([dependencies[identity] for identity in sorted(dependencies)])


def made_secrets(body: JsonObject, names: Iterable[str], *, is_whole: bool = True) -> tuple[MadeObject, ...]:
    """Return the Secrets of these names in the namespace of a body, sorted, without an empty name."""
    identities = [Identity("", "Secret", namespace_of(body), name) for name in sorted(set(names)) if name]
    return tuple([MadeObject(identity, is_whole=is_whole) for identity in identities])


_ISSUER: Final = "cert-manager.io/issuer"
_CLUSTER_ISSUER: Final = "cert-manager.io/cluster-issuer"
_LEGACY: Final = "kubernetes.io/tls-acme"


def issuer_of(ref: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Return the issuer of its namespace that a reference names. A cluster-scoped one is no dependency.

    An issuer of another group is a dependency if the store has it in the namespace: its scope is unknown.
    """
    fields = mapping(ref)
    kind, group = text(fields.get("kind")) or "Issuer", text(fields.get("group")) or CERT_MANAGER
    if kind != "ClusterIssuer" or group != CERT_MANAGER:
        yield PodReference(kind, text(fields.get("name")), (*at, "name"), optional=group != CERT_MANAGER, group=group)


def gets_certificates(body: JsonObject) -> bool:
    """Return whether cert-manager makes the Secrets that an annotated object names for TLS."""
    annotations = mapping(dig(body, "metadata", "annotations"))
    return any(text(annotations.get(key)) for key in (_ISSUER, _CLUSTER_ISSUER)) or annotations.get(_LEGACY) == "true"


def annotated_issuer(body: JsonObject) -> Iterator[PodReference]:
    """The issuer of its namespace that an annotated object names."""
    annotations = mapping(dig(body, "metadata", "annotations"))
    ref = {
        "name": annotations.get(_ISSUER),
        "kind": annotations.get("cert-manager.io/issuer-kind"),
        "group": annotations.get("cert-manager.io/issuer-group"),
    }
    for issuer in issuer_of(ref, ()):
        yield issuer._replace(steps=("metadata", "annotations", _ISSUER))


_OF_A_SELECTOR: Final = frozenset({"name", "namespace", "key"})
_ACCOUNTS: Final = frozenset({"serviceAccountRef", "serviceAccount"})
_BARE: Final = ("secretref", "credentialsref")
"""Ends of names of fields that name a Secret without a key in it."""


def credentials(tree: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Yield the references in the fields below `tree`; `at` are the steps to it."""
    for field, value in mapping(tree).items():
        steps = (*at, field)
        if isinstance(value, list):
            for index, item in mappings(value):
                yield from credentials(item, (*steps, index))
        elif isinstance(value, Mapping):
            kind = _kind(field, value)
            if (kind, value.get("name")) == ("ServiceAccount", "default"):
                continue  # Every namespace has it.
            if kind:
                yield PodReference(kind, text(value.get("name")), (*steps, "name"))
            else:
                yield from credentials(value, steps)


def _kind(field: str, value: Mapping[str, Any]) -> str:
    if not isinstance(value.get("name"), str):
        return ""
    if field in _ACCOUNTS:
        return "ServiceAccount"
    if field == "caProvider":
        return "ConfigMap" if value.get("type") == "ConfigMap" else "Secret"
    is_selector = value.keys() <= _OF_A_SELECTOR and ("key" in value or field.lower().endswith(_BARE))
    return "Secret" if is_selector else ""
