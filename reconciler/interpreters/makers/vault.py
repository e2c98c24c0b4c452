"""Shared parts of the kinds of the Vault Secrets Operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.interpreters.pods.references import PodReference
from reconciler.interpreters.reading import namespace_of, text
from reconciler.model.tree import JsonObject, dig

VAULT: Final = "secrets.hashicorp.com"
"""The API group."""


def named_in(body: JsonObject, steps: tuple[str, ...], kind: str) -> Iterator[PodReference]:
    """Yield the object that a field names by `name`, or by `namespace/name` of the same namespace.

    Source: Vault Secrets Operator, API reference, vaultAuthRef: without a name it is the one of the operator itself.
    """
    namespace, _, name = text(dig(body, *steps)).rpartition("/")
    if namespace in ("", namespace_of(body)):
        yield PodReference(kind, name, steps, group=VAULT)
