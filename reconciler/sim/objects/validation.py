"""The basics that an API server refuses: names, labels, workloads, immutable fields. Far from complete, on purpose."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.secret_data import typed_data
from reconciler.sim.objects.selectors import object_matches
from reconciler.sim.objects.status import Body, FieldError, Json, forbidden_field, invalid, required, wrong

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULES = {
    "Namespace": (_LABEL, 63, "a lowercase RFC 1123 label"),
    "Service": (_LABEL, 63, "a lowercase RFC 1123 label"),
}
_PATH_NAMES = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_STATEFUL_SET_MUTABLE = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip


def validate(resource: Resource, body: Body, old: Body | None) -> None:
    """Raise Refused (422) with every broken rule of a create (old None) or an update."""
    errors = [*_metadata(resource, body)]
    rule = _RULES.get(body["kind"]) if not resource.is_custom else None
    if rule is not None:
        errors += rule(body)
    if resource.is_custom:
        errors += list(_schema(body, resource.schema or {}, ""))
    if old is not None and not resource.is_custom:
        errors += _immutable(body, old)
    if errors:
        raise invalid(resource.kind, resource.group, body["metadata"]["name"], errors)


def _quoted(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _metadata(resource: Resource, body: Body) -> Iterator[FieldError]:
    metadata = body["metadata"]
    name = metadata["name"]
    pattern, length, what = _NAME_RULES.get(resource.kind, (_SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain"))
    if resource.kind in _PATH_NAMES:
        pattern, what = r"[^/%]+", "a path segment name"
    if len(name) > length:
        yield wrong("metadata.name", _quoted(name), f"must be no more than {length} bytes")
    if not re.fullmatch(pattern, name):
        yield wrong("metadata.name", _quoted(name), f"{what} is required (regex used for validation is '{pattern}')")
    yield from _labels(metadata.get("labels") or {}, "metadata.labels", values=True)
    yield from _labels(metadata.get("annotations") or {}, "metadata.annotations", values=False)


def _labels(labels: Body, field: str, *, values: bool) -> Iterator[FieldError]:
    for key, value in labels.items():
        prefix, slash, name = key.rpartition("/")
        if not re.fullmatch(_QUALIFIED, name) or len(name) > 63:
            yield wrong(field, _quoted(key), f"name part is not valid (regex used for validation is '{_QUALIFIED}')")
        if slash and not re.fullmatch(_SUBDOMAIN, prefix):
            yield wrong(field, _quoted(key), "prefix part must be a DNS subdomain")
        if values and value and (len(value) > 63 or not re.fullmatch(_QUALIFIED, value)):
            yield wrong(field, _quoted(value), f"a valid label value matches '({_QUALIFIED})?'")


def _workload(body: Body) -> Iterator[FieldError]:
    spec = body["spec"]
    if spec.get("replicas", 0) < 0:
        yield wrong("spec.replicas", _quoted(spec["replicas"]), "must be greater than or equal to 0")
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate"):
        note = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", note)
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    elif not selector:
        yield wrong("spec.selector", "{}", f"empty selector is invalid for {body['kind'].lower()}")
    labels = spec["template"]["metadata"].get("labels")
    if not selector or not object_matches(selector, labels or {}):
        yield wrong("spec.template.metadata.labels", _quoted(labels), "`selector` does not match template `labels`")
    yield from _pod_spec(spec["template"]["spec"], "spec.template.spec", restart=("Always",))


def _job(body: Body) -> Iterator[FieldError]:
    yield from _pod_spec(body["spec"]["template"]["spec"], "spec.template.spec", restart=("OnFailure", "Never"))


def _cron_job(body: Body) -> Iterator[FieldError]:
    schedule = body["spec"].get("schedule", "")
    if not schedule:
        yield required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        text = f"expected exactly 5 fields, found {len(schedule.split())}: [{' '.join(schedule.split())}]"
        yield wrong("spec.schedule", _quoted(schedule), text)
    path = "spec.jobTemplate.spec.template.spec"
    yield from _pod_spec(body["spec"]["jobTemplate"]["spec"]["template"]["spec"], path, restart=("OnFailure", "Never"))


def _pod_spec(spec: Body, path: str, *, restart: tuple[str, ...]) -> Iterator[FieldError]:
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for field in ("initContainers", "containers"):
        names: set[str] = set()
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container(container, f"{path}.{field}[{index}]", volumes, names)
    if spec["restartPolicy"] not in restart:
        supported = ", ".join(f'"{value}"' for value in restart)
        text = f'Unsupported value: "{spec["restartPolicy"]}": supported values: {supported}'
        yield FieldError(f"{path}.restartPolicy", "FieldValueNotSupported", text)


def _container(container: Body, path: str, volumes: set[str | None], names: set[str]) -> Iterator[FieldError]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif not re.fullmatch(_LABEL, name):
        yield wrong(f"{path}.name", _quoted(name), f"a lowercase RFC 1123 label is required ('{_LABEL}')")
    elif name in names:
        yield FieldError(f"{path}.name", "FieldValueDuplicate", f"Duplicate value: {_quoted(name)}")
    names.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            text = f"Not found: {_quoted(mount.get('name'))}"
            yield FieldError(f"{path}.volumeMounts[{index}].name", "FieldValueNotFound", text)


def _service(body: Body) -> Iterator[FieldError]:
    spec = body["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("port", 0)
        if not 0 < number < 65536:
            yield wrong(f"spec.ports[{index}].port", str(number), "must be between 1 and 65535, inclusive")
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")


def _config(body: Body) -> Iterator[FieldError]:
    for field in ("data", "binaryData"):
        for key in body.get(field) or {}:
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
                text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                yield wrong(f"{field}[{key}]", _quoted(key), text)


def _secret(body: Body) -> Iterator[FieldError]:
    yield from _config(body)
    yield from typed_data(body)


def _autoscaler(body: Body) -> Iterator[FieldError]:
    spec = body["spec"]
    if spec.get("maxReplicas", 0) < 1:
        yield wrong("spec.maxReplicas", str(spec.get("maxReplicas", 0)), "must be greater than 0")
    elif spec["maxReplicas"] < spec["minReplicas"]:
        yield wrong("spec.maxReplicas", str(spec["maxReplicas"]), "must be greater than or equal to `minReplicas`")


def _definition(body: Body) -> Iterator[FieldError]:
    spec = body["spec"]
    if body["metadata"]["name"] != f"{spec['names'].get('plural')}.{spec.get('group')}":
        yield wrong("metadata.name", _quoted(body["metadata"]["name"]), 'must be spec.names.plural+"."+spec.group')
    for index, version in enumerate(spec.get("versions") or ()):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


_RULES: dict[str, Callable[[Body], Iterator[FieldError]]] = {
    **dict.fromkeys(_WORKLOADS, _workload),
    "Job": _job,
    "CronJob": _cron_job,
    "Pod": lambda body: _pod_spec(body["spec"], "spec", restart=("Always", "OnFailure", "Never")),
    "Service": _service,
    "ConfigMap": _config,
    "Secret": _secret,
    "HorizontalPodAutoscaler": _autoscaler,
    "CustomResourceDefinition": _definition,
}


def _immutable(body: Body, old: Body) -> Iterator[FieldError]:
    kind, new, was = body["kind"], body.get("spec") or {}, old.get("spec") or {}
    note = "field is immutable"
    if kind in ("Deployment", "DaemonSet", "ReplicaSet") and new.get("selector") != was.get("selector"):
        yield wrong("spec.selector", _quoted(new.get("selector")), note)
    elif kind == "StatefulSet" and _changed(new, was) - _STATEFUL_SET_MUTABLE:
        names = ", ".join(f"'{name}'" for name in sorted(_STATEFUL_SET_MUTABLE - {"minReadySeconds"}))
        text = f"updates to statefulset spec for fields other than {names} and 'minReadySeconds' are forbidden"
        yield forbidden_field("spec", text)
    elif kind == "Job":
        fields = ("completions", "selector", "template", "completionMode")
        suspended = was.get("suspend") and not (old.get("status") or {}).get("startTime")
        for field in fields if not suspended else ("selector",):
            if new.get(field) != was.get(field):
                yield wrong(f"spec.{field}", _quoted(new.get(field)), note)
    elif kind in ("Secret", "ConfigMap"):
        yield from _frozen_data(body, old)
    elif kind == "Service" and was["type"] == new["type"] != "ExternalName":
        if new.get("clusterIP") != was.get("clusterIP"):
            yield wrong("spec.clusterIPs[0]", _quoted(new.get("clusterIPs")), "may not change once set")
    elif kind in ("RoleBinding", "ClusterRoleBinding") and body["roleRef"] != old["roleRef"]:
        yield wrong("roleRef", _quoted(body["roleRef"]), "cannot change roleRef")
    elif kind == "PersistentVolumeClaim" and _changed(new, was) - {"resources", "volumeName"}:
        yield forbidden_field("spec", "spec is immutable after creation except resources.requests for bound claims")
    elif kind == "Pod" and _fixed_pod(new) != _fixed_pod(was):
        yield forbidden_field("spec", "pod updates may not change fields other than images, tolerations and deadlines")


def _changed(new: Body, was: Body) -> set[str]:
    return {name for name in {**new, **was} if new.get(name) != was.get(name)}


def _frozen_data(body: Body, old: Body) -> Iterator[FieldError]:
    if body["kind"] == "Secret" and body["type"] != old["type"]:
        yield wrong("type", _quoted(body["type"]), "field is immutable")
    if not old.get("immutable"):
        return
    if not body.get("immutable"):
        yield forbidden_field("immutable", "field is immutable when `immutable` is set")
    for field in ("data", "binaryData"):
        if body.get(field) != old.get(field):
            yield forbidden_field(field, "field is immutable when `immutable` is set")


def _fixed_pod(spec: Body) -> Body:
    free = ("tolerations", "activeDeadlineSeconds", "nodeName", "terminationGracePeriodSeconds", "schedulingGates")
    fixed = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        fixed[field] = [{k: v for k, v in c.items() if k not in ("image", "resources")} for c in spec.get(field) or ()]
    return fixed


_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
}  # fmt: skip


def _schema(value: Json, schema: Body, path: str) -> Iterator[FieldError]:
    """Types, required fields, enums and bounds of a structural schema."""
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return
    wanted = _TYPES.get(schema.get("type", ""))
    if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
        text = (
            f'Invalid value: "{_go_name(value)}": {path} in body must be of type {schema["type"]}: "{_go_name(value)}"'
        )
        yield FieldError(path or "<nil>", "FieldValueTypeInvalid", text)
        return
    yield from _bounds(value, schema, path)
    if isinstance(value, dict):
        for name in schema.get("required") or ():
            if name not in value:
                yield required(f"{path}.{name}".lstrip("."))
        for name, below in value.items():
            node = (schema.get("properties") or {}).get(name)
            if node is not None and (path or name not in ("metadata", "apiVersion", "kind")):
                yield from _schema(below, node, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _schema(item, schema.get("items") or {}, f"{path}[{index}]")


def _bounds(value: Json, schema: Body, path: str) -> Iterator[FieldError]:
    if schema.get("enum") and value not in schema["enum"]:
        supported = ", ".join(_quoted(v) for v in schema["enum"])
        text = f"Unsupported value: {_quoted(value)}: supported values: {supported}"
        yield FieldError(path, "FieldValueNotSupported", text)
    if "minimum" in schema and value < schema["minimum"]:
        yield wrong(path, _quoted(value), f"{path} in body should be greater than or equal to {schema['minimum']}")
    if "maximum" in schema and value > schema["maximum"]:
        yield wrong(path, _quoted(value), f"{path} in body should be less than or equal to {schema['maximum']}")


def _go_name(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {dict: "object", list: "array", str: "string", int: "integer", float: "number"}[type(value)]
