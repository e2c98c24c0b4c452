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

_SECRET_VOLUMES = (
    ("azureFile", "secretName"),
    ("secret", "secretName"),
)
_SECRET_REF_VOLUMES = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("flexVolume", "secretRef"),
    ("iscsi", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("storageos", "secretRef"),
)


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
        yield from _named(entry, (*at, "envFrom", index), (("ConfigMap", "configMapRef"), ("Secret", "secretRef")))
    for index, entry in mappings(container.get("env")):
        origin = mapping(entry.get("valueFrom"))
        kinds = (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef"))
        yield from _named(origin, (*at, "env", index, "valueFrom"), kinds)


def volume_references(volume: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[Mention]:
    """What a volume refers to, projected sources included."""
    yield from _named(volume, at, (("ConfigMap", "configMap"),))
    for source, field in _SECRET_VOLUMES:
        given = mapping(volume.get(source))
        yield Mention("Secret", text(given.get(field)), (*at, source, field), given.get("optional") is True)
    for source, field in _SECRET_REF_VOLUMES:
        yield from _named(mapping(volume.get(source)), (*at, source), (("Secret", field),))
    claim = mapping(volume.get("persistentVolumeClaim"))
    steps = (*at, "persistentVolumeClaim", "claimName")
    yield Mention("PersistentVolumeClaim", text(claim.get("claimName")), steps)
    for index, projected in mappings(mapping(volume.get("projected")).get("sources")):
        kinds = (("ConfigMap", "configMap"), ("Secret", "secret"))
        yield from _named(projected, (*at, "projected", "sources", index), kinds)


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
        given = mapping(parent.get(field))
        yield Mention(kind, text(given.get("name")), (*at, field, "name"), given.get("optional") is True)


def _service_account(spec: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[Mention]:
    # The API server copies the deprecated field into the new one, so a template may have either.
    for field in ("serviceAccountName", "serviceAccount"):
        name = text(spec.get(field))
        if name:
            if name != "default":
                yield Mention("ServiceAccount", name, (*at, field))
            return
