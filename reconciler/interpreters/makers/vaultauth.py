"""VaultAuth and VaultConnection of the Vault Secrets Operator: where Vault is, and how to log in there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.kstatus import is_on_its_way
from reconciler.interpreters.makers.vault import VAULT, named_in
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import namespace_of, text
from reconciler.model.demand import DependencyRef
from reconciler.model.observation import Health
from reconciler.model.tree import JsonObject, dig

_ACCOUNTS: Final = (("kubernetes", "serviceAccount"), ("jwt", "serviceAccount"), ("aws", "irsaServiceAccount"))
_SECRETS: Final = (("jwt", "secretRef"), ("appRole", "secretRef"), ("aws", "secretRef"))


def _references(body: JsonObject) -> Iterator[PodReference]:
    yield from named_in(body, ("spec", "vaultConnectionRef"), "VaultConnection")
    for kind, fields in (("ServiceAccount", _ACCOUNTS), ("Secret", _SECRETS)):
        for method, field in fields:
            name = text(dig(body, "spec", method, field))
            if (kind, name) != ("ServiceAccount", "default"):
                yield PodReference(kind, name, ("spec", method, field))
    certificate = ("spec", "caCertSecretRef")
    yield PodReference("Secret", text(dig(body, *certificate)), certificate)


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Source: Vault Secrets Operator, API reference: the connection, Secrets and ServiceAccounts of its namespace."""
    return as_dependencies(_references(body), namespace_of(body))


def _health(live: JsonObject) -> Health:
    """Healthy when status.valid is true, Unhealthy when it is false."""
    valid = dig(live, "status", "valid")
    if is_on_its_way(live) or valid is None:
        return Health.PROGRESSING
    return Health.HEALTHY if valid is True else Health.UNHEALTHY


INTERPRETER = Interpreter(
    kinds=((VAULT, "VaultAuth"), (VAULT, "VaultConnection")),
    dependencies=_dependencies,
    health=_health,
)
