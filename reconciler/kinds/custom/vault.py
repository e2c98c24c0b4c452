"""Kinds of the Vault Secrets Operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.api.clusters import Health
from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import DependencyRef, Made
from reconciler.kinds.body_fields import condition, mapping, namespace_of, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import PodReference, as_dependencies, made_secrets
from reconciler.kinds.status_conditions import is_on_its_way

VAULT: Final = "secrets.hashicorp.com"
"""The API group."""


def named_in(body: JsonObject, steps: tuple[str, ...], kind: str) -> Iterator[PodReference]:
    """Yield the object that a field names by `name`, or by `namespace/name` of the same namespace.

    Source: Vault Secrets Operator, API reference, vaultAuthRef: without a name it is the one of the operator itself.
    """
    namespace, _, name = text(dig(body, *steps)).rpartition("/")
    if namespace in ("", namespace_of(body)):
        yield PodReference(kind, name, steps, group=VAULT)


_ACCOUNTS: Final = (("kubernetes", "serviceAccount"), ("jwt", "serviceAccount"), ("aws", "irsaServiceAccount"))
_SECRETS: Final = (("jwt", "secretRef"), ("appRole", "secretRef"), ("aws", "secretRef"))


def _references(body: JsonObject) -> Iterator[PodReference]:
    """Source: Vault Secrets Operator, API reference: the connection, Secrets and ServiceAccounts of its namespace."""
    yield from named_in(body, ("spec", "vaultConnectionRef"), "VaultConnection")
    for kind, fields in (("ServiceAccount", _ACCOUNTS), ("Secret", _SECRETS)):
        for method, field in fields:
            name = text(dig(body, "spec", method, field))
            if (kind, name) != ("ServiceAccount", "default"):
                yield PodReference(kind, name, ("spec", method, field))
    certificate = ("spec", "caCertSecretRef")
    yield PodReference("Secret", text(dig(body, *certificate)), certificate)


def _health(live: JsonObject) -> Health:
    """Healthy when status.valid is true, Unhealthy when it is false."""
    valid = dig(live, "status", "valid")
    if is_on_its_way(live) or valid is None:
        return Health.PROGRESSING
    return Health.HEALTHY if valid is True else Health.UNHEALTHY


VAULT_AUTH = Interpreter(
    kinds=((VAULT, "VaultAuth"), (VAULT, "VaultConnection")),
    dependencies=lambda body: as_dependencies(_references(body), body),
    health=_health,
)


_NAME: Final = ("spec", "destination", "name")


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: Vault Secrets Operator, Destination: it makes the Secret where `create` is true, else it fills one."""
    destination = mapping(dig(body, "spec", "destination"))
    return made_secrets(body, [text(destination.get("name"))], is_whole=destination.get("create") is True)


def _vaultsecret_dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return its login, and the Secret that it only fills. Objects in another namespace are no dependencies."""
    found = list(named_in(body, ("spec", "vaultAuthRef"), "VaultAuth"))
    found += [PodReference(made.identity.kind, made.identity.name, _NAME) for made in _makes(body) if not made.is_whole]
    return as_dependencies(found, body)


def _vaultsecret_health(live: JsonObject) -> Health:
    """Healthy once the newest spec was synced; Unhealthy if Vault refuses the named secret.

    Source: Vault Secrets Operator, API reference: lastGeneration is the last reconciled one; a static secret that was
    read has a secretMAC, unless that is switched off; an issued certificate is valid.
    """
    if is_on_its_way(live):
        return Health.PROGRESSING
    status, generation = mapping(live.get("status")), dig(live, "metadata", "generation")
    seen = status.get("lastGeneration")
    if not seen or (generation is not None and seen != generation):
        return Health.PROGRESSING
    said = [condition(live, kind).get("status") for kind in ("Ready", "Healthy", "SecretSynced")]
    return Health.UNHEALTHY if "False" in said or _is_empty(live) else Health.HEALTHY


def _is_empty(live: JsonObject) -> bool:
    """Return whether its status reports that nothing was read."""
    status = mapping(live.get("status"))
    if live.get("kind") == "VaultPKISecret":
        return status.get("valid") is False
    is_static = live.get("kind") == "VaultStaticSecret"
    return is_static and dig(live, "spec", "hmacSecretData") is not False and not status.get("secretMAC")


VAULT_SECRET = Interpreter(
    kinds=((VAULT, "VaultDynamicSecret"), (VAULT, "VaultPKISecret"), (VAULT, "VaultStaticSecret")),
    dependencies=_vaultsecret_dependencies,
    makes=_makes,
    health=_vaultsecret_health,
)
