"""Kinds from which operators make Secrets: ExternalSecret, SecretStore, SecretProviderClass, SealedSecret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.clusters import Health
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import Made
from reconciler.api.refs import GVK
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import SECRETS_STORE_GROUP, PodReference, as_dependencies, made_secrets
from reconciler.kinds.status_conditions import by_condition

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


_GENERATORS: Final = "generators.external-secrets.io/v1alpha1"
_ONCE: Final = frozenset({"0", "0s", "0m", "0h"})


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: external-secrets, creationPolicy: None makes nothing, Merge adds to a Secret that is there."""
    target = mapping(dig(body, "spec", "target"))
    policy = text(target.get("creationPolicy"))
    # A target of another kind is made instead of a Secret.
    manifest = mapping(target.get("manifest"))
    name = text(target.get("name")) or text(dig(body, "metadata", "name"))
    return () if policy == "None" or manifest else made_secrets(body, [name], is_whole=policy != "Merge")


def _references(body: JsonObject) -> Iterator[PodReference]:
    """Yield stores and generators of its namespace, templates of values. Cluster-scoped ones are no dependencies."""
    spec = mapping(body.get("spec"))
    yield from _store(spec.get("secretStoreRef"), ("spec", "secretStoreRef"))
    for field in ("data", "dataFrom"):
        for index, entry in mappings(spec.get(field)):
            steps = ("spec", field, index, "sourceRef")
            source = mapping(entry.get("sourceRef"))
            yield from _store(source.get("storeRef"), (*steps, "storeRef"))
            yield from _generator(source.get("generatorRef"), (*steps, "generatorRef"))
    for index, entry in mappings(dig(spec, "target", "template", "templateFrom")):
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            name = text(mapping(entry.get(field)).get("name"))
            yield PodReference(kind, name, ("spec", "target", "template", "templateFrom", index, field, "name"))
    if text(dig(spec, "target", "creationPolicy")) == "Merge":
        name = text(dig(spec, "target", "name")) or text(dig(body, "metadata", "name"))
        yield PodReference("Secret", name, ("spec", "target", "name"))


def _store(ref: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    given = mapping(ref)
    if (text(given.get("kind")) or "SecretStore") == "SecretStore":
        yield PodReference("SecretStore", text(given.get("name")), (*at, "name"), group=EXTERNAL_SECRETS)


def _generator(ref: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    given = mapping(ref)
    kind = text(given.get("kind"))
    if kind and kind != "ClusterGenerator":
        group = GVK.parse(text(given.get("apiVersion")) or _GENERATORS, kind).group
        yield PodReference(kind, text(given.get("name")), (*at, "name"), group=group)


def _health(live: JsonObject) -> Health:
    """Healthy once Ready, when the Secret was written for the newest spec; Unhealthy while it cannot be."""
    health = by_condition(live, "Ready")
    return Health.PROGRESSING if health is Health.HEALTHY and _is_behind(live) else health


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


EXTERNAL_SECRET = Interpreter(
    kinds=((EXTERNAL_SECRETS, "ExternalSecret"),),
    dependencies=lambda body: as_dependencies(_references(body), body),
    makes=_makes,
    health=_health,
)


def _store_health(live: JsonObject) -> Health:
    """Healthy once Ready; Unhealthy when its provider is not valid or does not let it in."""
    return by_condition(live, "Ready")


SECRET_STORE = Interpreter(
    kinds=((EXTERNAL_SECRETS, "SecretStore"),),
    # Secrets, ConfigMaps and ServiceAccounts that any provider logs in with.
    dependencies=lambda body: as_dependencies(credentials(dig(body, "spec", "provider"), ("spec", "provider")), body),
    health=_store_health,
)


def _synced_secrets(body: JsonObject) -> tuple[Made, ...]:
    """Source: Secrets Store CSI driver, "Sync as Kubernetes Secret": while a pod has the volume."""
    entries = mappings(dig(body, "spec", "secretObjects"))
    return made_secrets(body, [text(entry.get("secretName")) for _, entry in entries])


SECRET_PROVIDER_CLASS = Interpreter(kinds=((SECRETS_STORE_GROUP, "SecretProviderClass"),), makes=_synced_secrets)


def _sealed_health(live: JsonObject) -> Health:
    """Healthy once Synced. Unhealthy when it cannot be opened, or a Secret of another owner is in its place."""
    return by_condition(live, "Synced")


SEALED_SECRET = Interpreter(
    kinds=(("bitnami.com", "SealedSecret"),),
    # Source: sealed-secrets: the Secret has the name of the SealedSecret, whatever is in spec.template.metadata.
    makes=lambda body: made_secrets(body, [text(dig(body, "metadata", "name"))]),
    health=_sealed_health,
)
