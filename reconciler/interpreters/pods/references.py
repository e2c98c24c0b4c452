"""References of a pod spec: ConfigMaps, Secrets, a ServiceAccount, PersistentVolumeClaims of its namespace.

Source: Karmada: dependencies of a pod. RBAC objects, the PersistentVolume and the StorageClass are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.interpreters.reading import mapping, mappings, text
from reconciler.model.demand import DependencyRef
from reconciler.model.problem import dotted
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


SECRETS_STORE_DRIVER: Final = "secrets-store.csi.k8s.io"
SECRETS_STORE_GROUP: Final = "secrets-store.csi.x-k8s.io"
"""Driver and API group of the Secrets Store CSI driver: its volumes name a SecretProviderClass in their attributes."""


class PodReference(NamedTuple):
    """One field that names an object in the same namespace."""

    kind: str
    name: str
    steps: tuple[Step, ...]
    optional: bool = False
    group: str = ""


def pod_references(spec: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Every field of a pod spec that refers to something; `at` are the steps to the spec."""
    spec = mapping(spec)
    for field in CONTAINER_LISTS:
        if field in spec:
            for index, container in mappings(spec[field]):
                yield from container_references(container, (*at, field, index))
    for index, entry in mappings(spec.get("imagePullSecrets")):
        yield PodReference("Secret", text(entry.get("name")), (*at, "imagePullSecrets", index, "name"))
    yield from _service_account(spec, at)
    for index, volume in mappings(spec.get("volumes")):
        yield from volume_references(volume, (*at, "volumes", index))


def container_references(container: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Yield the references of `envFrom` and `env` of a container."""
    for index, entry in mappings(container.get("envFrom")):
        for kind, field in _ENV_FROM_KINDS:
            if field in entry:
                yield _mention(kind, entry[field], (*at, "envFrom", index, field, "name"))
    for index, entry in mappings(container.get("env")):
        origin = entry.get("valueFrom")
        if origin is not None:
            origin = mapping(origin)
            for kind, field in _ENV_KINDS:
                if field in origin:
                    yield _mention(kind, origin[field], (*at, "env", index, "valueFrom", field, "name"))


def volume_references(volume: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Yield the references of a volume, projected sources included."""
    if "configMap" in volume:
        yield _mention("ConfigMap", volume["configMap"], (*at, "configMap", "name"))
    for source in volume:
        if source in _SECRET_VOLUMES:
            field, given = _SECRET_VOLUMES[source], mapping(volume[source])
            yield PodReference("Secret", text(given.get(field)), (*at, source, field), given.get("optional") is True)
        elif source in _SECRET_REF_VOLUMES:
            field, given = _SECRET_REF_VOLUMES[source], mapping(volume[source])
            if field in given:
                yield _mention("Secret", given[field], (*at, source, field, "name"))
            if given.get("driver") == SECRETS_STORE_DRIVER:
                name = text(mapping(given.get("volumeAttributes")).get("secretProviderClass"))
                steps = (*at, source, "volumeAttributes", "secretProviderClass")
                yield PodReference("SecretProviderClass", name, steps, group=SECRETS_STORE_GROUP)
        elif source == "persistentVolumeClaim":
            claim = text(mapping(volume[source]).get("claimName"))
            yield PodReference("PersistentVolumeClaim", claim, (*at, source, "claimName"))
        elif source == "projected":
            for index, projected in mappings(mapping(volume[source]).get("sources")):
                for kind, field in _PROJECTED_KINDS:
                    if field in projected:
                        yield _mention(kind, projected[field], (*at, source, "sources", index, field, "name"))


def as_dependencies(mentions: Iterable[PodReference], namespace: str) -> tuple[DependencyRef, ...]:
    """One dependency for each object that is named, sorted; required when any mention requires it."""
    found: dict[Identity, DependencyRef] = {}
    for mention in mentions:
        if not mention.name:
            continue
        identity = Identity(mention.group, mention.kind, namespace, mention.name)
        known = found.get(identity)
        if known is None or (known.optional and not mention.optional):
            found[identity] = DependencyRef(
                identity=identity, path=dotted(mention.steps), optional=mention.optional
            )  # fmt: skip
    return tuple([found[identity] for identity in sorted(found)])


def _mention(kind: str, reference: Json, steps: tuple[Step, ...]) -> PodReference:
    given = mapping(reference)
    return PodReference(kind, text(given.get("name")), steps, given.get("optional") is True)


def _service_account(spec: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[PodReference]:
    # The API server copies the deprecated field into the new one, so a template may have either.
    for field in ("serviceAccountName", "serviceAccount"):
        name = text(spec.get(field))
        if name:
            if name != "default":
                yield PodReference("ServiceAccount", name, (*at, field))
            return
