"""Credentials of operators: fields that name a Secret, a ConfigMap or a ServiceAccount.

Source: external-secrets, apis/meta/v1: SecretKeySelector (name, namespace, key) and ServiceAccountSelector, and
CAProvider; cert-manager, apis/meta/v1: SecretKeySelector (name, key). Each of some forty providers has such fields in
places of its own, so they are known by their form. A namespace in them counts in cluster-scoped kinds only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.interpreters.pods.references import PodReference
from reconciler.interpreters.reading import mapping, mappings, text
from reconciler.model.tree import Json, Step

EXTERNAL_SECRETS: Final = "external-secrets.io"
"""The API group of the External Secrets Operator."""

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
    """Return the kind that a mapping names by its `name`; empty: it is no selector."""
    if not isinstance(value.get("name"), str):
        return ""
    if field in _ACCOUNTS:
        return "ServiceAccount"
    if field == "caProvider":
        return "ConfigMap" if value.get("type") == "ConfigMap" else "Secret"
    is_selector = value.keys() <= _OF_A_SELECTOR and ("key" in value or field.lower().endswith(_BARE))
    return "Secret" if is_selector else ""
