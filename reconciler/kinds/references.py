"""References that several kinds share: issuers of certificates, and credentials.

An issuer stands in `issuerRef` of a Certificate, or in annotations of objects that use one.

Source: cert-manager, API reference, ObjectReference; "Annotated Ingress resource".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.pod_template import PodReference

GROUP: Final = "cert-manager.io"
_ISSUER: Final = "cert-manager.io/issuer"
_CLUSTER_ISSUER: Final = "cert-manager.io/cluster-issuer"
_LEGACY: Final = "kubernetes.io/tls-acme"


def issuer_of(ref: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Return the issuer of its namespace that a reference names. A cluster-scoped one is no dependency.

    An issuer of another group is a dependency if the store has it in the namespace: its scope is unknown.
    """
    fields = mapping(ref)
    kind, group = text(fields.get("kind")) or "Issuer", text(fields.get("group")) or GROUP
    if kind != "ClusterIssuer" or group != GROUP:
        yield PodReference(kind, text(fields.get("name")), (*at, "name"), optional=group != GROUP, group=group)


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
