"""What a pod spec refers to: ConfigMaps, Secrets, a ServiceAccount, PersistentVolumeClaims of its namespace.

Source: Karmada: dependencies of a pod. RBAC objects, the PersistentVolume and the StorageClass are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from reconciler.interpreters.reading import mapping, mappings, text
from reconciler.model.demand import DependencyRef
from reconciler.model.document import dotted
from reconciler.model.refs import Identity
from reconciler.model.tree import Json, Step

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")

_SECRET_VOLUMES = {
    "azureFile": "secretName",
    "secret": "secretName",
}
_SECRET_REF_VOLUMES = {
    "cephfs": "secretRef",
    "cinder": "secretRef",
    "csi": "nodePublishSecretRef",
    "flexVolume": "secretRef",
    "iscsi": "secretRef",
    "rbd": "secretRef",
    "scaleIO": "secretRef",
    "storageos": "secretRef",
}
_ENV_FROM_KINDS = (("ConfigMap", "configMapRef"), ("Secret", "secretRef"))
_ENV_KINDS = (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef"))
_PROJECTED_KINDS = (("ConfigMap", "configMap"), ("Secret", "secret"))


class Mention(NamedTuple):
    """One field that names an object of the core group in the same namespace."""

    kind: str
    name: str
    steps: tuple[Step, ...]
    optional: bool = False


def pod_references(spec: Json, at: tuple[Step, ...]) -> Iterator[Mention]:
    """Every field of a pod spec that refers to something; `at` are the steps to the spec."""
    spec = mapping(spec)
    for field in CONTAINER_LISTS:
        for index, container in mappings(spec.get(field)):
            yield from container_references(container, (*at, field, index))
    for index, entry in mappings(spec.get("imagePullSecrets")):
        yield Mention("Secret", text(entry.get("name")), (*at, "imagePullSecrets", index, "name"))
    yield from _service_account(spec, at)
    for index, volume in mappings(spec.get("volumes")):
        yield from volume_references(volume, (*at, "volumes", index))


def container_references(container: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[Mention]:
    """What `envFrom` and `env` of a container refer to."""
    for index, entry in mappings(container.get("envFrom")):
        yield from _named(entry, (*at, "envFrom", index), _ENV_FROM_KINDS)
    for index, entry in mappings(container.get("env")):
        origin = entry.get("valueFrom")
        if origin is not None:
            yield from _named(mapping(origin), (*at, "env", index, "valueFrom"), _ENV_KINDS)


def volume_references(volume: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[Mention]:
    """What a volume refers to, projected sources included."""
    yield from _named(volume, at, (("ConfigMap", "configMap"),))
    for source in volume:
        if source in _SECRET_VOLUMES:
            field, given = _SECRET_VOLUMES[source], mapping(volume[source])
            yield Mention("Secret", text(given.get(field)), (*at, source, field), given.get("optional") is True)
        elif source in _SECRET_REF_VOLUMES:
            yield from _named(mapping(volume[source]), (*at, source), (("Secret", _SECRET_REF_VOLUMES[source]),))
        elif source == "persistentVolumeClaim":
            claim = text(mapping(volume[source]).get("claimName"))
            yield Mention("PersistentVolumeClaim", claim, (*at, source, "claimName"))
        elif source == "projected":
            for index, projected in mappings(mapping(volume[source]).get("sources")):
                yield from _named(projected, (*at, source, "sources", index), _PROJECTED_KINDS)


def as_dependencies(mentions: Iterable[Mention], namespace: str) -> tuple[DependencyRef, ...]:
    """One dependency for each object that is named, sorted; required when any mention requires it."""
    found: dict[Identity, DependencyRef] = {}
    for mention in mentions:
        if not mention.name:
            continue
        identity = Identity("", mention.kind, namespace, mention.name)
        known = found.get(identity)
        if known is None or (known.optional and not mention.optional):
            found[identity] = DependencyRef(
                identity=identity, path=dotted(mention.steps), optional=mention.optional
            )  # fmt: skip
    return tuple(found[identity] for identity in sorted(found))


def _named(parent: Mapping[str, Any], at: tuple[Step, ...], kinds: Iterable[tuple[str, str]]) -> Iterator[Mention]:
    for kind, field in kinds:
        if field in parent:
            given = mapping(parent[field])
            yield Mention(kind, text(given.get("name")), (*at, field, "name"), given.get("optional") is True)


def _service_account(spec: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[Mention]:
    # The API server copies the deprecated field into the new one, so a template may have either.
    for field in ("serviceAccountName", "serviceAccount"):
        name = text(spec.get(field))
        if name:
            if name != "default":
                yield Mention("ServiceAccount", name, (*at, field))
            return
