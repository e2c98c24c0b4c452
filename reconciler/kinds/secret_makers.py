"""Kinds from which operators make Secrets.

Those of External Secrets, of the Secrets Store CSI driver and of the Vault Secrets Operator; SealedSecret; Certificate
and Issuer of cert-manager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.api.clusters import Health
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import MadeObject
from reconciler.api.refs import GVK
from reconciler.kinds.body_fields import (
    by_condition,
    condition,
    count,
    is_on_its_way,
    is_stale,
    mapping,
    mappings,
    namespace_of,
    text,
)
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.references import PodReference, credentials, issuer_of, made_secrets

EXTERNAL_SECRETS: Final = "external-secrets.io"
"""The API group of the External Secrets Operator."""

_GENERATORS: Final = "generators.external-secrets.io/v1alpha1"
_ONCE: Final = frozenset({"0", "0s", "0m", "0h"})


def _store(ref: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    fields = mapping(ref)
    if (text(fields.get("kind")) or "SecretStore") == "SecretStore":
        yield PodReference("SecretStore", text(fields.get("name")), (*at, "name"), group=EXTERNAL_SECRETS)


def _is_behind(live: JsonObject) -> bool:
    """Return whether the written Secret is of an older spec.

    Source: external-secrets: status.syncedResourceVersion begins with the generation that it wrote, and counts unless
    refreshing is switched off.
    """
    spec = mapping(live.get("spec"))
    if spec.get("refreshPolicy") == "CreatedOnce":
        return False
    if spec.get("refreshPolicy") != "OnChange" and str(spec.get("refreshInterval")) in _ONCE:
        return False
    written, _, _ = text(dig(live, "status", "syncedResourceVersion")).partition("-")
    generation = dig(live, "metadata", "generation")
    return bool(written) and generation is not None and written != str(generation)


class ExternalSecret(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Yield stores and generators of its namespace, templates of values; not cluster-scoped ones."""
        spec = mapping(body.get("spec"))
        yield from _store(spec.get("secretStoreRef"), ("spec", "secretStoreRef"))
        for field in ("data", "dataFrom"):
            for index, entry in mappings(spec.get(field)):
                steps = ("spec", field, index, "sourceRef")
                source = mapping(entry.get("sourceRef"))
                yield from _store(source.get("storeRef"), (*steps, "storeRef"))
                generator = mapping(source.get("generatorRef"))
                kind = text(generator.get("kind"))
                if kind and kind != "ClusterGenerator":
                    group = GVK.parse(text(generator.get("apiVersion")) or _GENERATORS, kind).group
                    yield PodReference(kind, text(generator.get("name")), (*steps, "generatorRef", "name"), group=group)
        for index, entry in mappings(dig(spec, "target", "template", "templateFrom")):
            for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
                name = text(mapping(entry.get(field)).get("name"))
                yield PodReference(kind, name, ("spec", "target", "template", "templateFrom", index, field, "name"))
        if text(dig(spec, "target", "creationPolicy")) == "Merge":
            name = text(dig(spec, "target", "name")) or text(dig(body, "metadata", "name"))
            yield PodReference("Secret", name, ("spec", "target", "name"))

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: external-secrets, creationPolicy: None makes nothing, Merge adds to a Secret that is there."""
        target = mapping(dig(body, "spec", "target"))
        policy = text(target.get("creationPolicy"))
        # A target of another kind is made instead of a Secret.
        manifest = mapping(target.get("manifest"))
        name = text(target.get("name")) or text(dig(body, "metadata", "name"))
        return () if policy == "None" or manifest else made_secrets(body, [name], is_whole=policy != "Merge")

    def health(self, live: JsonObject) -> Health:
        """Healthy once Ready, when the Secret was written for the newest spec; Unhealthy while it cannot be."""
        health = by_condition(live, "Ready")
        return Health.PROGRESSING if health is Health.HEALTHY and _is_behind(live) else health


class SecretStore(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Secrets, ConfigMaps and ServiceAccounts that any provider logs in with."""
        return credentials(dig(body, "spec", "provider"), ("spec", "provider"))

    def health(self, live: JsonObject) -> Health:
        """Healthy once Ready; Unhealthy when its provider is not valid or does not let it in."""
        return by_condition(live, "Ready")


class SecretProviderClass(Interpreter):
    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: Secrets Store CSI driver, "Sync as Kubernetes Secret": while a pod has the volume."""
        entries = mappings(dig(body, "spec", "secretObjects"))
        return made_secrets(body, [text(entry.get("secretName")) for _, entry in entries])


class SealedSecret(Interpreter):
    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: sealed-secrets: the Secret has its name, whatever is in spec.template.metadata."""
        return made_secrets(body, [text(dig(body, "metadata", "name"))])

    def health(self, live: JsonObject) -> Health:
        """Healthy once Synced. Unhealthy when it cannot be opened, or a Secret of another owner is in its place."""
        return by_condition(live, "Synced")


VAULT: Final = "secrets.hashicorp.com"
"""The API group."""

VAULT_SECRETS: Final = ("VaultDynamicSecret", "VaultPKISecret", "VaultStaticSecret")


def named_in(body: JsonObject, steps: tuple[str, ...], kind: str) -> Iterator[PodReference]:
    """Yield the object that a field names by `name`, or by `namespace/name` of the same namespace.

    Source: Vault Secrets Operator, API reference, vaultAuthRef: without a name it is the one of the operator itself.
    """
    namespace, _, name = text(dig(body, *steps)).rpartition("/")
    if namespace in ("", namespace_of(body)):
        yield PodReference(kind, name, steps, group=VAULT)


_VAULT_ACCOUNTS: Final = (("kubernetes", "serviceAccount"), ("jwt", "serviceAccount"), ("aws", "irsaServiceAccount"))
_SECRETS: Final = (("jwt", "secretRef"), ("appRole", "secretRef"), ("aws", "secretRef"))


class VaultAuth(Interpreter):
    """VaultAuth and VaultConnection of the Vault Secrets Operator."""

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Source: Vault Secrets Operator, API reference: connection, Secrets and ServiceAccounts of its namespace."""
        yield from named_in(body, ("spec", "vaultConnectionRef"), "VaultConnection")
        for kind, fields in (("ServiceAccount", _VAULT_ACCOUNTS), ("Secret", _SECRETS)):
            for method, field in fields:
                name = text(dig(body, "spec", method, field))
                if (kind, name) != ("ServiceAccount", "default"):
                    yield PodReference(kind, name, ("spec", method, field))
        certificate = ("spec", "caCertSecretRef")
        yield PodReference("Secret", text(dig(body, *certificate)), certificate)

    def health(self, live: JsonObject) -> Health:
        """Healthy when status.valid is true, Unhealthy when it is false."""
        valid = dig(live, "status", "valid")
        if is_on_its_way(live) or valid is None:
            return Health.PROGRESSING
        return Health.HEALTHY if valid is True else Health.UNHEALTHY


def _is_empty(live: JsonObject) -> bool:
    status = mapping(live.get("status"))
    if live.get("kind") == "VaultPKISecret":
        return status.get("valid") is False
    is_static = live.get("kind") == "VaultStaticSecret"
    return is_static and dig(live, "spec", "hmacSecretData") is not False and not status.get("secretMAC")


class VaultSecret(Interpreter):
    """VaultDynamicSecret, VaultPKISecret and VaultStaticSecret."""

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Yield its login, and the Secret that it only fills. Objects in another namespace are no dependencies."""
        yield from named_in(body, ("spec", "vaultAuthRef"), "VaultAuth")
        for secret in self.makes(body):
            if not secret.is_whole:
                yield PodReference("Secret", secret.identity.name, ("spec", "destination", "name"))

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        """Source: Vault Secrets Operator, Destination: it makes the Secret if `create` is true, else it fills one."""
        destination = mapping(dig(body, "spec", "destination"))
        return made_secrets(body, [text(destination.get("name"))], is_whole=destination.get("create") is True)

    def health(self, live: JsonObject) -> Health:
        """Healthy once the newest spec was synced; Unhealthy if Vault refuses the named secret.

        Source: Vault Secrets Operator, API reference: lastGeneration is the last reconciled one; a static secret that
        was read has a secretMAC, unless that is switched off; an issued certificate is valid.
        """
        if is_on_its_way(live):
            return Health.PROGRESSING
        status, generation = mapping(live.get("status")), dig(live, "metadata", "generation")
        generation_seen = status.get("lastGeneration")
        if not generation_seen or (generation is not None and generation_seen != generation):
            return Health.PROGRESSING
        conditions = [condition(live, kind).get("status") for kind in ("Ready", "Healthy", "SecretSynced")]
        return Health.UNHEALTHY if "False" in conditions or _is_empty(live) else Health.HEALTHY


class Certificate(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        yield from issuer_of(dig(body, "spec", "issuerRef"), ("spec", "issuerRef"))
        yield from credentials(dig(body, "spec", "keystores"), ("spec", "keystores"))

    def makes(self, body: JsonObject) -> tuple[MadeObject, ...]:
        return made_secrets(body, [text(dig(body, "spec", "secretName"))])

    def health(self, live: JsonObject) -> Health:
        """Healthy while Ready, renewals included; Progressing while issued; Unhealthy if that failed or it expired.

        Source: cert-manager, API reference, CertificateStatus: failedIssuanceAttempts counts since the last success.
        """
        if is_on_its_way(live):
            return Health.PROGRESSING
        ready, issuing = condition(live, "Ready"), condition(live, "Issuing")
        is_known = bool(ready) and not is_stale(ready, live)
        if is_known and ready.get("status") == "True":
            return Health.HEALTHY
        if is_known and ready.get("reason") == "Expired":
            return Health.UNHEALTHY
        if issuing.get("status") == "True" or is_stale(issuing, live):
            return Health.PROGRESSING
        return Health.UNHEALTHY if count(dig(live, "status", "failedIssuanceAttempts"), 0) else Health.PROGRESSING


_ACCOUNT_KEY = ("spec", "acme", "privateKeySecretRef", "name")


class Issuer(Interpreter):
    def references(self, body: JsonObject) -> Iterator[PodReference]:
        """Yield the Secret of a CA, and its credentials for Vault, Venafi, an ACME server and providers of DNS."""
        yield PodReference("Secret", text(dig(body, "spec", "ca", "secretName")), ("spec", "ca", "secretName"))
        is_made = dig(body, "spec", "acme", "disableAccountKeyGeneration") is not True
        for ref in credentials(mapping(body.get("spec")), ("spec",)):
            # Source: cert-manager, ACMEIssuer: a missing key of the account is created.
            yield ref._replace(optional=is_made) if ref.steps == _ACCOUNT_KEY else ref

    def health(self, live: JsonObject) -> Health:
        """Healthy once Ready; Unhealthy when its CA is not there, or it is not let in."""
        return by_condition(live, "Ready")
