"""ExternalSecret of the External Secrets Operator: a Secret with values from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.makers.readiness import by_condition
from reconciler.interpreters.makers.selectors import EXTERNAL_SECRETS
from reconciler.interpreters.pods.references import PodReference, as_dependencies
from reconciler.interpreters.reading import mapping, mappings, namespace_of, text
from reconciler.model.demand import DependencyRef, Made
from reconciler.model.observation import Health
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import Json, JsonObject, Step, dig

_GENERATORS: Final = "generators.external-secrets.io/v1alpha1"
_ONCE: Final = frozenset({"0", "0s", "0m", "0h"})


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: external-secrets, creationPolicy: None makes nothing, Merge adds to a Secret that is there."""
    target = mapping(dig(body, "spec", "target"))
    policy = text(target.get("creationPolicy"))
    # A target of another kind is made instead of a Secret.
    manifest = mapping(target.get("manifest"))
    name = text(target.get("name")) or text(dig(body, "metadata", "name"))
    if policy == "None" or manifest or not name:
        return ()
    return (Made(Identity("", "Secret", namespace_of(body), name), is_whole=policy != "Merge"),)


def _dependencies(body: JsonObject) -> tuple[DependencyRef, ...]:
    """Return stores and generators of its namespace, templates of values. Cluster-scoped ones are no dependencies."""
    return as_dependencies(_references(body), namespace_of(body))


def _references(body: JsonObject) -> Iterator[PodReference]:
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
    policy = text(dig(spec, "target", "creationPolicy"))
    if policy == "Merge":
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


INTERPRETER = Interpreter(
    kinds=((EXTERNAL_SECRETS, "ExternalSecret"),),
    dependencies=_dependencies,
    makes=_makes,
    health=_health,
)
