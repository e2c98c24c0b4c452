"""Workloads: replicas, selectors, containers, resources, ports; and volumes of a StatefulSet that moves away.

Source: Kubernetes: claims of volumeClaimTemplates outlive the StatefulSet and its replicas, unless its
persistentVolumeClaimRetentionPolicy says otherwise, and no claim leads out of its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.demand import exact
from reconciler.api.plan import Cause, Change
from reconciler.api.policies import LabelRequirement, Operator
from reconciler.api.refs import Identity
from reconciler.documents import Findings, not_a_mapping, not_a_string, type_name
from reconciler.kinds.body_fields import mappings, text
from reconciler.templates.metadata import check_annotations, check_labels

_STATEFUL: Final = ("apps", "StatefulSet")


def claims_of(identity: Identity, body: JsonObject) -> tuple[str, ...]:
    """The names of the volume claim templates of a StatefulSet; none for everything else."""
    if identity[:2] != _STATEFUL:
        return ()
    claims = mappings(dig(body, "spec", "volumeClaimTemplates"))
    return tuple(text(dig(claim, "metadata", "name")) for _, claim in claims)


def why_confirmed(identity: Identity, live: JsonObject, cluster: str, *, moves: bool) -> str:
    """Return why a person must confirm a deletion, as the end of a sentence; empty: no data are at stake.

    `moves`: new copies are to take over elsewhere.
    """
    names = ", ".join(claims_of(identity, live))
    if not names:
        return ""
    if dig(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
        return f"its volume claims ({names}) in {cluster} are deleted with it"
    stay = f"its volume claims ({names}) stay in {cluster}, and copies elsewhere have none of their data"
    return stay if moves else ""


def why_share_confirmed(identity: Identity, live: JsonObject, cluster: str) -> str:
    """Return why a person must confirm a move of replicas; empty: no data are at stake."""
    names = ", ".join(claims_of(identity, live))
    if not names:
        return ""
    if dig(live, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete":
        return f"the volume claims ({names}) of the replicas that go are deleted with them in {cluster}"
    return (
        f"the volume claims ({names}) of the replicas that go stay in {cluster}, and replicas elsewhere have none of "
        "their data"
    )


def replicas_moved(change: Change) -> int:
    """Return the change of replicas by placement in an update; negative: taken away."""
    for one in change.fields:
        is_placed = one.path == "spec.replicas" and one.cause is Cause.PLACEMENT
        if is_placed and isinstance(one.before, int) and isinstance(one.after, int):
            return one.after - one.before
    return 0


_DASHES: Final = "begin each item with a dash: - name: web"

_SELECTING: Final = tuple(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"))
_POD_SPECS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    **dict.fromkeys(_SELECTING, ("spec", "template", "spec")),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "Pod"): ("spec",),
}

_ENDING: Final = frozenset({("batch", "Job"), ("batch", "CronJob")})

WORKLOADS: Final = frozenset(_POD_SPECS)
"""(group, kind) of workloads."""


def check_workload(body: JsonObject, group_kind: tuple[str, str], findings: Findings) -> None:
    """Report problems of a built-in workload: those that the API server refuses, and those that no reviewer wants.

    Source: Kubernetes validation of workloads and pods.
    """
    if group_kind in _SELECTING:
        _check_selector(body, findings)
    if group_kind == ("batch", "Job") and dig(body, "spec", "ttlSecondsAfterFinished") is not None:
        message = "left out: a finished Job stays, so that it is not taken for one that is missing"
        findings.warning("field-without-effect", message, "spec", "ttlSecondsAfterFinished")
    steps = _POD_SPECS[group_kind]
    spec = dig(body, *steps)
    if len(steps) > 1:
        metadata = (*steps[:-1], "metadata")
        check_labels(dig(body, *metadata, "labels"), findings, *metadata, "labels")
        check_annotations(dig(body, *metadata, "annotations"), findings, *metadata, "annotations")
    if isinstance(spec, dict):
        if group_kind in _ENDING and not spec.get("restartPolicy"):
            message = "restartPolicy is missing, and its default is for what never ends; write OnFailure or Never"
            findings.warning("field-missing", message, *steps, "restartPolicy")
        claims = dig(body, "spec", "volumeClaimTemplates")
        _check_pod(spec, {text(dig(claim, "metadata", "name")) for _, claim in mappings(claims)}, steps, findings)
    elif group_kind != ("", "ReplicationController"):
        findings.error("field-missing", f"{'.'.join(steps)} is missing", *steps)


def _check_selector(body: JsonObject, findings: Findings) -> None:
    selector = dig(body, "spec", "selector")
    if not isinstance(selector, dict) or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        message = "spec.selector is missing; it selects the pods by their labels"
        findings.error("selector-missing", message, "spec", "selector")
        return
    labels = dig(body, "spec", "template", "metadata", "labels")
    # The check of labels reports values of other types.
    labels = {key: value for key, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}
    wanted = selector.get("matchLabels")
    for key, value in (wanted if isinstance(wanted, dict) else {}).items():
        if labels.get(key) != value:
            message = f"the pod template does not have this value of the label {key}; the API server refuses that"
            findings.error("selector-mismatch", message, "spec", "selector", "matchLabels", key)
    expressions = selector.get("matchExpressions")
    for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
        requirement = _requirement(expression)
        if requirement is not None and not requirement.matches(labels):
            message = f"the labels of the pod template do not meet this requirement on {requirement.key}"
            findings.error("selector-mismatch", message, "spec", "selector", "matchExpressions", index)


def _requirement(expression: Json) -> LabelRequirement | None:
    key, operator, values = dig(expression, "key"), dig(expression, "operator"), dig(expression, "values")
    if not isinstance(key, str) or operator not in tuple(Operator):
        return None  # the schema of the API server reports it
    strings = (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
    return LabelRequirement(key=key, operator=Operator(operator), values=frozenset(strings))


def _check_pod(spec: JsonObject, claims: set[str], steps: tuple[Step, ...], findings: Findings) -> None:
    names: set[str] = set()
    volumes = claims | {text(volume.get("name")) for _, volume in mappings(spec.get("volumes"))}
    if not spec.get("containers"):
        findings.error("containers-missing", "a pod needs at least one container", *steps, "containers")
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        if containers is not None and not isinstance(containers, list):
            findings.error("wrong-type", f"{type_name(containers)} where a list is needed; {_DASHES}", *steps, field)
            continue
        for index, container in enumerate(containers or ()):
            at = (*steps, field, index)
            if isinstance(container, dict):
                name = container.get("name")
                if not isinstance(name, str) or not name:
                    findings.error("name-missing", "a container needs a name; write - name: web", *at, "name")
                elif name in names:
                    findings.error(
                        "container-name-duplicate", f"another container of the pod is named {name!r}", *at, "name"
                    )
                else:
                    names.add(name)
                _check_env(container.get("env"), at, findings)
                _check_resources(container.get("resources"), at, findings)
                _check_mounts(container, volumes, at, findings)
            else:
                findings.error("wrong-type", not_a_mapping(container), *at)


def _check_mounts(container: JsonObject, volumes: set[str], at: tuple[Step, ...], findings: Findings) -> None:
    for index, mount in mappings(container.get("volumeMounts")):
        name = mount.get("name")
        if isinstance(name, str) and name and name not in volumes:
            # A webhook may bring the volume.
            message = f"no volume of the pod is named {name[:80]!r}; the API server refuses that"
            findings.warning("value-refused", message, *at, "volumeMounts", index, "name")


def _check_env(env: Json, at: tuple[Step, ...], findings: Findings) -> None:
    if env is None:
        return
    if not isinstance(env, list):
        findings.error("wrong-type", f"{type_name(env)} where a list is needed; {_DASHES}", *at, "env")
        return
    for index, entry in enumerate(env):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
            message = "an environment variable needs a name; write - {name: KEY, value: text}"
            findings.error("name-missing", message, *at, "env", index)
            continue
        value = entry.get("value")
        if value is not None and not isinstance(value, str):
            findings.error("wrong-type", not_a_string(value), *at, "env", index, "value")
        elif value and entry.get("valueFrom") is not None:
            message = "value and valueFrom exclude each other"
            findings.error("value-and-value-from", message, *at, "env", index, "valueFrom")


_ODD: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "cpu": (("k", "M", "G", "Ki", "Mi", "Gi"), "thousands of cores; a tenth of a core is 100m"),
    "memory": (("m",), "thousandths of a byte; write for example 128Mi"),
}
"""Suffixes that nobody means for a resource, and what is said of them."""
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def _check_resources(resources: Json, at: tuple[Step, ...], findings: Findings) -> None:
    if not isinstance(resources, dict):
        return
    amounts: dict[str, Mapping[str, object]] = {}
    for field in ("requests", "limits"):
        entries = resources.get(field)
        if not isinstance(entries, dict):
            continue
        amounts[field] = entries
        for name, value in entries.items():
            if not (isinstance(value, str | int | float) and _is_amount(value)):
                message = "not a quantity; write for example 100m, 0.5, 128Mi or 1G"
                findings.error("quantity-invalid", message, *at, "resources", field, name)
            elif value.__class__ is str and (odd := _ODD.get(name)) is not None and value.endswith(odd[0]):
                findings.warning("quantity-odd", odd[1], *at, "resources", field, name)
            if name not in _RESOURCES and "/" not in name and not name.startswith("hugepages-"):
                message = f"a resource is {', '.join(_RESOURCES)} or has a domain, such as nvidia.com/gpu"
                findings.error("unknown-value", message, *at, "resources", field, name)
    limits = amounts.get("limits", {})
    for name, value in amounts.get("requests", {}).items():
        limit = limits.get(name)
        if isinstance(value, str | int | float) and isinstance(limit, str | int | float) and _exceeds(value, limit):
            message = "more than its limit; the API server refuses that"
            findings.error("request-above-limit", message, *at, "resources", "requests", name)


# Thousands of containers have the same few amounts.
@lru_cache(maxsize=4096, typed=True)
def _is_amount(value: str | float) -> bool:
    amount = exact(value)
    return amount is not None and amount >= 0


@lru_cache(maxsize=4096, typed=True)
def _exceeds(request: str | float, limit: str | float) -> bool:
    wanted, most = exact(request), exact(limit)
    return wanted is not None and most is not None and wanted > most


def check_service(body: JsonObject, findings: Findings) -> None:
    """Report ports that an API server does not tell apart. Source: Kubernetes validation of Service."""
    ports = list(mappings(dig(body, "spec", "ports")))
    taken_names: set[object] = set()
    for index, port in ports:
        number, name, protocol = port.get("port"), port.get("name"), port.get("protocol") or "TCP"
        if isinstance(number, int) and isinstance(protocol, str):  # the schema reports other types
            if (number, protocol) in taken_names:
                message = f"port {number} stands twice for this protocol"
                findings.error("port-duplicate", message, "spec", "ports", index)
            taken_names.add((number, protocol))
        if isinstance(name, str) and name:
            if name in taken_names:
                findings.error("port-duplicate", "another port has this name", "spec", "ports", index, "name")
            taken_names.add(name)
        elif name is None and len(ports) > 1:
            findings.error("name-missing", "each of several ports needs a name", "spec", "ports", index, "name")
