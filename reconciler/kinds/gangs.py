"""Kinds whose pods run together or not at all: SparkApplication of the Spark operator, training jobs of Kubeflow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from reconciler.api.clusters import Health, RunOutcome
from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import Component, Demand, PodShape, exact, units
from reconciler.kinds.body_fields import (
    condition,
    count,
    mapping,
    mappings,
    outcome_by_condition,
    prune_server_fields,
    text,
)
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import (
    CONTAINER_LISTS,
    PodKind,
    container_references,
    pod_references,
    pod_shape,
    volume_references,
)
from reconciler.kinds.references import PodReference
from reconciler.regex import regex

_FORM: Final = regex(r"(\d{1,15})([kmgtp]?)b?", re.IGNORECASE)
_MIB: Final = 2**20
_POWERS: Final = {"": 2, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_LEAST_OVERHEAD: Final = 384 * _MIB


def pod_memory(memory: Json, overhead: Json, factor: Fraction) -> int:
    """Return memory plus overhead: the given overhead, else the factor's share and at least 384 MiB.

    Spark's units are binary and a bare number means MiB, so `512m` is 512 MiB, not a Kubernetes quantity.
    """
    heap = _bytes(memory)
    if heap is None:
        heap = 1024 * _MIB
    written = _bytes(overhead)
    if written is not None:
        return heap + written
    share = heap * factor
    return heap + max(_LEAST_OVERHEAD, -((-share.numerator) // share.denominator))


def _bytes(value: Json) -> int | None:
    match = _FORM.fullmatch(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    return int(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()] if match else None


_ROLES: Final = ("driver", "executor")
_JVM_TYPES: Final = ("java", "scala")
_EXTRA_CONTAINERS: Final = ("initContainers", "sidecars")
_STATE: Final = ("status", "applicationState", "state")
_WELL: Final = ("RUNNING", "SUCCEEDING", "COMPLETED")


def _shape(body: JsonObject, role: str, factor: Fraction) -> PodShape:
    pod = mapping(dig(body, "spec", role))
    cores = pod.get("coreRequest") or pod.get("cores") or 1
    requests = {
        "cpu": units("cpu", cores) or 0,
        "memory": pod_memory(pod.get("memory"), pod.get("memoryOverhead"), factor),
    }
    gpu = mapping(pod.get("gpu"))
    if text(gpu.get("name")):
        requests[text(gpu.get("name"))] = count(gpu.get("quantity"), 0)
    selector = {**mapping(dig(body, "spec", "nodeSelector")), **mapping(pod.get("nodeSelector"))}
    nodes = {key: pod.get(key) for key in ("affinity", "tolerations")} | {"nodeSelector": selector}
    return replace(
        pod_shape(nodes), requests=tuple(sorted((name, amount) for name, amount in requests.items() if amount))
    )


class SparkApplication(Interpreter):
    def demand(self, body: JsonObject) -> Demand:
        """One driver and its executors, never divided.

        Source: "Application distribution overview", multi-cluster gang scheduling; Karmada: components of a
        SparkApplication.
        """
        factor = exact(dig(body, "spec", "memoryOverheadFactor"))
        if factor is None or factor < 0:
            is_jvm = text(dig(body, "spec", "type")).lower() in _JVM_TYPES
            factor = Fraction(1 if is_jvm else 4, 10)
        executors = count(dig(body, "spec", "executor", "instances"), 1)
        dynamic = mapping(dig(body, "spec", "dynamicAllocation"))
        if dynamic.get("enabled") is True:
            least = (count(dynamic.get(field), 1) for field in ("initialExecutors", "minExecutors"))
            executors = max(executors, *least)
        components = (
            Component(name="driver", replicas=1, shape=_shape(body, "driver", factor)),
            Component(name="executor", replicas=executors, shape=_shape(body, "executor", factor)),
        )
        return Demand(replicas=1 + executors, components=components, is_divisible=False)

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        spec = mapping(body.get("spec"))
        yield PodReference("ConfigMap", text(spec.get("sparkConfigMap")), ("spec", "sparkConfigMap"))
        yield PodReference("ConfigMap", text(spec.get("hadoopConfigMap")), ("spec", "hadoopConfigMap"))
        pull_secrets = spec.get("imagePullSecrets")
        for index, name in enumerate(pull_secrets if isinstance(pull_secrets, list) else ()):
            yield PodReference("Secret", text(name), ("spec", "imagePullSecrets", index))
        for index, volume in mappings(spec.get("volumes")):
            yield from volume_references(volume, ("spec", "volumes", index))
        for role in _ROLES:
            pod, at = mapping(spec.get(role)), ("spec", role)
            yield from container_references(pod, at)
            for kind, field in (("ConfigMap", "configMaps"), ("Secret", "secrets")):
                for index, entry in mappings(pod.get(field)):
                    yield PodReference(kind, text(entry.get("name")), (*at, field, index, "name"))
            account = text(pod.get("serviceAccount"))
            if account != "default":
                yield PodReference("ServiceAccount", account, (*at, "serviceAccount"))
            for field in _EXTRA_CONTAINERS:
                for index, container in mappings(pod.get(field)):
                    yield from container_references(container, (*at, field, index))
            yield from pod_references(dig(pod, "template", "spec"), (*at, "template", "spec"))

    def containers(self, body: JsonObject) -> tuple[tuple[Step, ...], ...]:
        """Init containers and sidecars; the main containers are made by the operator."""
        paths: list[tuple[Step, ...]] = []
        for role in _ROLES:
            for field in _EXTRA_CONTAINERS:
                paths += [("spec", role, field, index) for index, _ in mappings(dig(body, "spec", role, field))]
            for field in CONTAINER_LISTS:
                entries = mappings(dig(body, "spec", role, "template", "spec", field))
                paths += [("spec", role, "template", "spec", field, index) for index, _ in entries]
        return tuple(paths)

    def images(self, body: JsonObject) -> tuple[tuple[tuple[Step, ...], str], ...]:
        places = (("spec",), ("spec", "driver"), ("spec", "executor"), *self.containers(body))
        images = (((*steps, "image"), dig(body, *steps, "image")) for steps in places)
        return tuple((steps, image) for steps, image in images if isinstance(image, str) and image)

    def pod_template(self, body: JsonObject) -> Json:
        """Return driver and executor: the application counts as another one when they change."""
        roles = {role: dig(body, "spec", role) for role in _ROLES}
        return roles if any(roles.values()) else None

    def health(self, live: JsonObject) -> Health:
        """Only the state FAILED is unhealthy; the operator recovers from the others.

        Source: Karmada.
        """
        states = {"FAILED": Health.UNHEALTHY, **dict.fromkeys(_WELL, Health.HEALTHY)}
        return states.get(text(dig(live, *_STATE)), Health.PROGRESSING)

    def outcome(self, live: JsonObject) -> RunOutcome:
        outcomes = {"FAILED": RunOutcome.FAILED, "COMPLETED": RunOutcome.SUCCEEDED}
        return outcomes.get(text(dig(live, *_STATE)), RunOutcome.RUNS)


REPLICA_SPECS: Final = {
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}
"""The field of each kind that maps a role (`Master`, `Worker`) to its replicas and pod template."""


def _roles(body: JsonObject) -> Iterator[tuple[str, Mapping[str, Any], PodKind]]:
    field = REPLICA_SPECS.get(text(body.get("kind")), "")
    for role, spec in sorted(mapping(dig(body, "spec", field)).items()):
        if isinstance(spec, Mapping):
            yield role, spec, PodKind(path=("spec", field, role, "template"))


class TrainingJob(Interpreter):
    """The training jobs of Kubeflow."""

    def demand(self, body: JsonObject) -> Demand:
        """One component a role. The set is never divided: its pods find each other only within one cluster.

        Source: "Application distribution overview", multi-cluster gang scheduling; Karmada: components of training
        jobs.
        """
        components = tuple(
            Component(name=role, replicas=count(spec.get("replicas"), 1), shape=template.shape(body))
            for role, spec, template in _roles(body)
        )
        total = sum(component.replicas for component in components)
        return Demand(replicas=total, components=components, is_divisible=False)

    def references(self, body: JsonObject) -> Iterator[PodReference]:
        return chain.from_iterable(template.references(body) for _, _, template in _roles(body))

    def images(self, body: JsonObject) -> tuple[tuple[tuple[Step, ...], str], ...]:
        return tuple(image for _, _, template in _roles(body) for image in template.images(body))

    def containers(self, body: JsonObject) -> tuple[tuple[Step, ...], ...]:
        return tuple(steps for _, _, template in _roles(body) for steps in template.containers(body))

    def pod_template(self, body: JsonObject) -> Json:
        """Return the templates of all roles: the set counts as another one when they change."""
        return {role: template.pod_template(body) for role, _, template in _roles(body)} or None

    def health(self, live: JsonObject) -> Health:
        """Source: Karmada: a training job that has failed is unhealthy, one that runs or has succeeded healthy."""
        match self.outcome(live):
            case RunOutcome.SUCCEEDED:
                return Health.HEALTHY
            case RunOutcome.FAILED:
                return Health.UNHEALTHY
        is_restarting = condition(live, "Restarting").get("status") == "True"
        is_running = condition(live, "Running").get("status") == "True"
        return Health.HEALTHY if is_running and not is_restarting else Health.PROGRESSING

    def outcome(self, live: JsonObject) -> RunOutcome:
        return outcome_by_condition(live, {"Failed": RunOutcome.FAILED, "Succeeded": RunOutcome.SUCCEEDED})

    def pods_needed(self, live: JsonObject) -> int:
        """Return all of its pods; for an elastic set the minimum with which it goes on."""
        total = self.demand(live).replicas or 1
        return min(total, count(dig(live, "spec", "elasticPolicy", "minReplicas"), total))

    def sanitize(self, body: JsonObject) -> JsonObject:
        pruned = prune_server_fields(body)
        for _, _, template in _roles(pruned):
            pruned = template.prune(pruned)
        return pruned
