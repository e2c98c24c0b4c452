"""VaultStaticSecret, VaultDynamicSecret and VaultPKISecret of the Vault Secrets Operator."""

from __future__ import annotations

from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.kstatus import is_on_its_way
from reconciler.interpreters.makers.vault import VAULT, named_in
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import condition, mapping, namespace_of, text
from reconciler.model.demand import DependencyRef, Made
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig

_NAME: Final = ("spec", "destination", "name")


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: Vault Secrets Operator, Destination: it makes the Secret where `create` is true, else it fills one."""
    destination = mapping(dig(body, "spec", "destination"))
    name = text(destination.get("name"))
    whole = destination.get("create") is True
    return (Made(Identity("", "Secret", namespace_of(body), name), is_whole=whole),) if name else ()


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return its login, and the Secret that it only fills. Objects in another namespace are no dependencies."""
    found = list(named_in(body, ("spec", "vaultAuthRef"), "VaultAuth"))
    found += [PodReference(made.identity.kind, made.identity.name, _NAME) for made in _makes(body) if not made.is_whole]
    return as_dependencies(found, namespace_of(body))


def _health(live: JsonObject) -> Health:
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
    if "False" in said or _is_empty(live):
        return Health.UNHEALTHY
    return Health.HEALTHY


def _is_empty(live: JsonObject) -> bool:
    """Return whether its status reports that nothing was read."""
    status = mapping(live.get("status"))
    if live.get("kind") == "VaultPKISecret":
        return status.get("valid") is False
    is_static = live.get("kind") == "VaultStaticSecret"
    return is_static and dig(live, "spec", "hmacSecretData") is not False and not status.get("secretMAC")


INTERPRETER = Interpreter(
    kinds=((VAULT, "VaultDynamicSecret"), (VAULT, "VaultPKISecret"), (VAULT, "VaultStaticSecret")),
    dependencies=_dependencies,
    makes=_makes,
    health=_health,
)
