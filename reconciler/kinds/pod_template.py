"""Kinds with a pod template: its references, and the resources that one pod requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject, Step, dig, without
from reconciler.api.demand import NodeTerm, PodShape, resources
from reconciler.kinds.body_fields import mapping, mappings, prune_server_fields, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.references import SECRETS_STORE_GROUP, PodReference

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")

_SECRET_VOLUMES = {"azureFile": "secretName", "secret": "secretName"}
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

_SECRETS_STORE_DRIVER: Final = "secrets-store.csi.k8s.io"
"""The Secrets Store CSI driver: its volumes name a SecretProviderClass in their attributes."""


def pod_references(spec: Json, at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Every field of a pod spec that refers to something; `at` are the steps to the spec."""
    spec = mapping(spec)
    for field in CONTAINER_LISTS:
        if field in spec:
            for index, container in mappings(spec[field]):
                yield from container_references(container, (*at, field, index))
    for index, entry in mappings(spec.get("imagePullSecrets")):
        yield PodReference("Secret", text(entry.get("name")), (*at, "imagePullSecrets", index, "name"))
    # The API server copies the deprecated field into the new one, so a template may have either.
    accounts = ((field, text(spec.get(field))) for field in ("serviceAccountName", "serviceAccount"))
    field, account = next((each for each in accounts if each[1]), ("", ""))
    if account and account != "default":
        yield PodReference("ServiceAccount", account, (*at, field))
    for index, volume in mappings(spec.get("volumes")):
        yield from volume_references(volume, (*at, "volumes", index))


def container_references(container: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Yield the references of `envFrom` and `env` of a container."""
    for index, entry in mappings(container.get("envFrom")):
        for kind, field in _ENV_FROM_KINDS:
            if field in entry:
                yield _reference(kind, entry[field], (*at, "envFrom", index, field, "name"))
    for index, entry in mappings(container.get("env")):
        origin = entry.get("valueFrom")
        if origin is not None:
            origin = mapping(origin)
            for kind, field in _ENV_KINDS:
                if field in origin:
                    yield _reference(kind, origin[field], (*at, "env", index, "valueFrom", field, "name"))


def volume_references(volume: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[PodReference]:
    """Yield the references of a volume, projected sources included."""
    if "configMap" in volume:
        yield _reference("ConfigMap", volume["configMap"], (*at, "configMap", "name"))
    for source in volume:
        if source in _SECRET_VOLUMES:
            field, fields = _SECRET_VOLUMES[source], mapping(volume[source])
            yield PodReference("Secret", text(fields.get(field)), (*at, source, field), fields.get("optional") is True)
        elif source in _SECRET_REF_VOLUMES:
            field, fields = _SECRET_REF_VOLUMES[source], mapping(volume[source])
            if field in fields:
                yield _reference("Secret", fields[field], (*at, source, field, "name"))
            if fields.get("driver") == _SECRETS_STORE_DRIVER:
                name = text(mapping(fields.get("volumeAttributes")).get("secretProviderClass"))
                steps = (*at, source, "volumeAttributes", "secretProviderClass")
                yield PodReference("SecretProviderClass", name, steps, group=SECRETS_STORE_GROUP)
        elif source == "persistentVolumeClaim":
            claim = text(mapping(volume[source]).get("claimName"))
            yield PodReference("PersistentVolumeClaim", claim, (*at, source, "claimName"))
        elif source == "projected":
            for index, projected in mappings(mapping(volume[source]).get("sources")):
                for kind, field in _PROJECTED_KINDS:
                    if field in projected:
                        yield _reference(kind, projected[field], (*at, source, "sources", index, field, "name"))


def _reference(kind: str, reference: Json, steps: tuple[Step, ...]) -> PodReference:
    fields = mapping(reference)
    return PodReference(kind, text(fields.get("name")), steps, fields.get("optional") is True)


_NOWHERE = NodeTerm(labels=(("kubernetes.io/hostname", "In", ()),))
"""In without values holds on no node: the meaning of an affinity with only empty terms."""

_POD_LEVEL = ("cpu", "memory", "hugepages-")


def pod_shape(spec: Json) -> PodShape:
    """The shape of a pod spec. Malformed amounts are left out: the API server would refuse them."""
    spec = mapping(spec)
    requests = pod_requests(spec)
    node_terms: tuple[NodeTerm, ...] = ()
    required = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(required, Mapping):
        terms = (
            NodeTerm(labels=_requirements(term.get("matchExpressions")), fields=_requirements(term.get("matchFields")))
            for _, term in mappings(required.get("nodeSelectorTerms"))
        )
        # Kubernetes: an empty term selects no node, while the others are alternatives.
        node_terms = tuple(term for term in terms if term.labels or term.fields) or (_NOWHERE,)
    return PodShape(
        requests=tuple(sorted((name, amount) for name, amount in requests.items() if amount > 0 and name != "pods")),
        node_selector=tuple(sorted((key, text(value)) for key, value in mapping(spec.get("nodeSelector")).items())),
        node_terms=node_terms,
        tolerations=tuple(
            (text(entry.get("key")), text(entry.get("operator")) or "Equal", text(entry.get("value")),
             text(entry.get("effect")))
            for _, entry in mappings(spec.get("tolerations"))
        ),
    )  # fmt: skip


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Amounts that the scheduler reserves for a pod, as `quantity.units` gives them.

    Containers run together with the sidecars; each init container runs beside the sidecars that started before it.
    """
    running, peak = _init_containers(spec)
    for _, container in mappings(spec.get("containers")):
        for name, amount in _amounts(container).items():
            running[name] = max(0, running.get(name, 0) + amount)
    total = {name: amount for name, amount in running.items() if amount}
    for name, amount in peak.items():
        total[name] = max(amount, total.get(name, 0))
    # Requests of spec.resources replace the sum; its limits count for resources that no container requests.
    if amounts := mapping(spec.get("resources")):
        limits, requests = resources(mapping(amounts.get("limits"))), resources(mapping(amounts.get("requests")))
        defaults = {name: amount for name, amount in limits.items() if name not in total}
        total.update((name, amount) for name, amount in (defaults | requests).items() if name.startswith(_POD_LEVEL))
    for name, amount in resources(mapping(spec.get("overhead"))).items():
        total[name] = total.get(name, 0) + amount
    return total


def _init_containers(spec: Mapping[str, Any]) -> tuple[dict[str, int], Mapping[str, int]]:
    """Return the sum of the sidecars, and the peak before the containers started."""
    if not spec.get("initContainers"):
        return {}, {}
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for _, container in mappings(spec.get("initContainers")):
        amounts = Counter(_amounts(container))
        if container.get("restartPolicy") == "Always":
            sidecars += amounts
            peak |= sidecars
        else:
            peak |= sidecars + amounts
    return dict(sidecars), peak


def _amounts(container: Mapping[str, Any]) -> dict[str, int]:
    """Requests of a container; a resource that has only a limit counts with its limit."""
    amounts = mapping(container.get("resources"))
    return resources(mapping(amounts.get("limits"))) | resources(mapping(amounts.get("requests")))


def _requirements(entries: Json) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple(
        (
            text(entry.get("key")),
            text(entry.get("operator")),
            tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else (),
        )
        for _, entry in mappings(entries)
        for values in (entry.get("values"),)
    )


class PodKind(Interpreter):
    """Kinds with one pod template at `path`, which is empty for a Pod: it is its own template."""

    def __init__(self, *kinds: tuple[str, str], path: tuple[str, ...] = ("spec", "template")) -> None:
        super().__init__(*kinds)
        self.path = path

    def pod_template(self, body: JsonObject) -> Json:
        return dig(body, *self.path)

    def pod_spec(self, body: JsonObject) -> Json:
        """Return the pod spec; None without one."""
        return dig(body, *self.path, "spec")

    def shape(self, body: JsonObject) -> PodShape:
        """Return the requests of one pod."""
        return pod_shape(self.pod_spec(body))

    def containers(self, body: JsonObject) -> tuple[tuple[Step, ...], ...]:
        spec = self.pod_spec(body)
        indexes = ((field, index) for field in CONTAINER_LISTS for index, _ in mappings(dig(spec, field)))
        return tuple((*self.path, "spec", field, index) for field, index in indexes)

    def images(self, body: JsonObject) -> tuple[tuple[tuple[Step, ...], str], ...]:
        spec = mapping(self.pod_spec(body))
        places: list[tuple[tuple[Step, ...], str]] = []
        for field in CONTAINER_LISTS:
            containers = spec.get(field)
            # By hand: every workload is asked, for each registry that it is pulled from.
            for index, container in enumerate(containers) if isinstance(containers, list) else ():
                image = container.get("image") if isinstance(container, (dict, Mapping)) else None
                if isinstance(image, str) and image:
                    places.append(((*self.path, "spec", field, index, "image"), image))
        return tuple(places)

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        return pod_references(self.pod_spec(body), (*self.path, "spec"))

    def sanitize(self, body: JsonObject) -> JsonObject:
        return self.prune(prune_server_fields(body))

    def prune(self, body: JsonObject) -> JsonObject:
        """The body without the empty creationTimestamp that generated templates carry."""
        metadata = dig(body, *self.path, "metadata")
        if isinstance(metadata, (dict, Mapping)) and "creationTimestamp" in metadata:
            return without(body, (*self.path, "metadata", "creationTimestamp"))
        return body


SPEC_TEMPLATE: Final = PodKind()
"""Any kind with its pods at `spec.template`."""
