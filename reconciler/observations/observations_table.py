"""The observations file: placement can be computed from it without access to the clusters.

Source: design#observations. Strict: an unknown field or a wrong type is an error with its line and field path. Reading
and writing walk the same tables; each field is the attribute of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.clusters import (
    ClusterNode,
    ClusterObservation,
    Health,
    Observations,
    PendingPods,
    Quota,
    Taint,
    Workload,
)
from reconciler.api.demand import Resources, units
from reconciler.api.problem import Document, Problem, Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.documents import (
    Field,
    Fields,
    FieldType,
    Findings,
    Shape,
    any_field,
    exactly,
    flag_field,
    integer_field,
    map_field,
    object_field,
    objects_field,
    shape,
    text_field,
    texts_field,
)
from reconciler.yaml import MAX_BYTES, read_yaml

_PRINTED = "a binding that `render` printed may stand here as it is; only resource and placement are read"

_UNREAD = "an earlier version read it in other processes; placement does not rest on it"

_AMOUNTS = "Resource name to quantity, as Kubernetes writes them."

RESOURCE_SHAPE = shape(
    text_field("apiVersion", "API group and version; the version does not matter.", required=True),
    text_field("kind", "The kind.", required=True),
    text_field("namespace", "The namespace; empty for what belongs to the cluster."),
    text_field("name", "The name.", required=True),
)

TAINT_SHAPE = shape(
    text_field("key", "The key.", required=True),
    text_field("value", "The value."),
    text_field(
        "effect",
        "What the taint does.",
        values=exactly("NoSchedule", "PreferNoSchedule", "NoExecute"),
        default="NoSchedule",
    ),
    text_field("timeAdded", "When it was put there.", no_effect="room does not depend on it"),
)

NODE_SHAPE = shape(
    text_field("name", "The name of the node.", required=True),
    flag_field("ready", "Whether its Ready condition is true.", default="true"),
    flag_field("unschedulable", "Whether it is cordoned.", default="false"),
    map_field("labels", "Labels."),
    objects_field("taints", "Taints.", shape=TAINT_SHAPE),
    any_field("allocatable", _AMOUNTS),
    any_field("requested", "What the pods on it request; `pods` is their number."),
)

QUOTA_SHAPE = shape(
    text_field("namespace", "The namespace that it limits.", required=True),
    any_field("hard", _AMOUNTS),
    any_field("used", _AMOUNTS),
)

PENDING_SHAPE = shape(
    text_field("namespace", "Their namespace.", required=True),
    integer_field("pods", "How many there are.", required=True),
    texts_field("names", "The first of them."),
    text_field("refusal", "Why no node ever takes them, so that they take no room; absent: one may."),
)

WORKLOAD_SHAPE = shape(
    *RESOURCE_SHAPE.fields,
    integer_field("replicas", "Replicas that it has in this cluster.", default="0"),
    integer_field("ready", "How many of them are ready.", default="0"),
    integer_field("unschedulable", "Pods of its newest revision that find no node.", default="0"),
    text_field("health", "Health.", values=exactly(*(str(health) for health in Health)), default="Unknown"),
    text_field("unschedulableSince", "Since when, as RFC 3339."),
    text_field("unhealthySince", "Since when, as RFC 3339."),
    flag_field(
        "endedByItself",
        "Whether it failed for good by its own fault, so that no other cluster takes it over.",
        default="false",
    ),
    integer_field("missing", "Pods that it wants and that are not there yet.", default="0"),
    integer_field("withoutNode", "Pods of it that have no node; absent: not known."),
    integer_field("established", "With how many replicas it has served, as the journal says."),
    text_field("manifest", "Digest of what was applied there.", no_effect=_UNREAD, severity=Severity.HINT),
)

CLUSTER_SHAPE = shape(
    text_field("name", "The name of the Cluster document.", required=True),
    flag_field("reachable", "Whether its API server answered.", default="true"),
    text_field("observedAt", "When this was seen, as RFC 3339."),
    text_field("kubeVersion", "The version of its API server; absent: not known."),
    texts_field("apis", "Kinds that are served, like apps/v1/Deployment. Absent: built-in kinds are assumed."),
    any_field("pendingRequests", "What pods request that wait for a node; `pods` is their number."),
    objects_field("pendingPods", "Pods that wait for a node.", shape=PENDING_SHAPE),
    objects_field("quotas", "ResourceQuotas.", shape=QUOTA_SHAPE),
    objects_field("nodes", "Nodes. Absent: the free capacity is not known.", shape=NODE_SHAPE),
    objects_field("workloads", "Workloads as they run there.", shape=WORKLOAD_SHAPE),
)

CONSTRAINT_SHAPE = shape(
    object_field("resource", "The resource that it concerns.", shape=RESOURCE_SHAPE, required=True),
    text_field("cluster", "The cluster that it concerns.", required=True),
    integer_field("replicasMax", "The most replicas there; 0 for none.", default="0"),
    text_field("until", "When it ends, as RFC 3339; absent: it does not end."),
    text_field("reason", "Why."),
    flag_field("excludes", "Whether the cluster is no candidate at all.", default="false"),
)

BINDING_SHAPE = shape(
    object_field("resource", "The resource that is placed.", shape=RESOURCE_SHAPE, required=True),
    objects_field(
        "placement",
        "Where it is.",
        text_field("cluster", "The cluster.", required=True),
        integer_field("replicas", "Replicas assigned there; absent or null for what has none."),
    ),
    text_field("affinityName", "The group of clusterAffinities that is in use."),
    any_field("policy", "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
    integer_field("unplaced", "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
    any_field("reasons", "As `render` prints it.", no_effect=_PRINTED, severity=Severity.HINT),
)

OBSERVATIONS_SHAPE = shape(
    integer_field("version", "Version of this format: 1.", required=True),
    objects_field("clusters", "What is known of each cluster.", shape=CLUSTER_SHAPE),
    objects_field("constraints", "What descheduling and failover have decided.", shape=CONSTRAINT_SHAPE),
    objects_field("bindings", "The previous placement.", shape=BINDING_SHAPE),
)

_MADE: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "clusters": (ClusterObservation, "name"),
    "nodes": (ClusterNode, "name"),
    "taints": (Taint, ""),
    "quotas": (Quota, ""),
    "pendingPods": (PendingPods, ""),
    "workloads": (Workload, "name"),
    "constraints": (Constraint, ""),
    "bindings": (PreviousPlacement, "resource"),
    "placement": (TargetCluster, "cluster"),
}
"""By field what each of its objects is, and the field that may have a value once alone; empty: none."""
_BY_KEY: Final = ("clusters", "workloads", "bindings")
_TIMES: Final = ("observedAt", "unschedulableSince", "unhealthySince", "until")
_IF_ANY: Final = ("pendingPods", "missing", "endedByItself", "excludes")
"""Fields that are not written without a value. No text and nothing unknown is."""
_BINARY: Final = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def _attribute(name: str) -> str:
    renamed = {"pendingPods": "pending", "placement": "targets", "bindings": "previous", "resource": "identity"}
    return renamed.get(name) or "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def parse_observations(data: bytes, path: str) -> tuple[Observations | None, tuple[Problem, ...]]:
    """Return the observations of a YAML or JSON file (None: an error) and all problems. Large files must be JSON."""
    document, problems = _document(data, path)
    if document is None:
        return None, problems
    report = Findings(document, OBSERVATIONS_SHAPE)
    top = Fields(report, OBSERVATIONS_SHAPE, document.body)
    if (version := top.integer("version")) not in (None, 1):
        report.error("version-unknown", f"version {version} is not known; this reads version 1", "version")
    observations = Observations(**{key: value for key, value in _values(top).items() if key != "version"})
    findings = (*problems, *report.sorted())
    return (None if any(p.severity is Severity.ERROR for p in findings) else observations), findings


def _document(data: bytes, path: str) -> tuple[Document | None, tuple[Problem, ...]]:
    if len(data) > MAX_BYTES and data.lstrip()[:1] == b"{":
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            problem = Problem(source=Source(path, error.lineno), code="json-syntax", message=error.msg)
            return None, (problem,)
        return Document(path=path, line=1, body=body, locate=lambda _: 1), ()
    file = read_yaml(path, data)
    if file.broken or len(file.documents) != 1:
        message = f"an observations file is one document, this has {len(file.documents)}"
        problem = Problem(source=Source(path), code="not-observations", message=message)
        return None, file.problems or (problem,)
    return file.documents[0], file.problems


def _values(fields: Fields) -> dict[str, Any]:
    """Return the values of a mapping by attribute, without absent fields whose attribute has the default."""
    values: dict[str, Any] = {}
    for field in fields.shape.fields:
        name, is_given = field.name, fields.has(field.name)
        value: Any = None
        match field.type:
            case FieldType.TEXT if not field.no_effect:
                value = _text(fields, field)
            case FieldType.INTEGER if is_given or field.required or field.default:
                value = fields.integer(name) or 0
                if value < 0 and name != "version":
                    fields.error("number-negative", f"{name} is {value}; it cannot be less than 0", name)
            case FieldType.FLAG if is_given:
                value = fields.flag(name)
            case FieldType.MAP:
                value = fields.text_map(name)
            case FieldType.TEXTS if is_given:
                value = _apis(fields) if name == "apis" else tuple(fields.texts(name))
            case FieldType.ANY if not field.no_effect:
                value = _amounts(fields, name)
            case FieldType.OBJECT:
                below = fields.child(name)
                value = _resource(_values(below))[1] if below is not None else Identity("", "", "", "")
            case FieldType.OBJECTS if is_given or name == "placement":
                value = _objects(fields, name)
        if value is not None:
            values[_attribute(name)] = value
    return values


def _objects(fields: Fields, name: str) -> Any:
    make, unique = _MADE[name]
    objects: dict[Any, Any] = {}
    for below in fields.children(name):
        values = _values(below)
        if make is Workload:
            values["gvk"], values["identity"] = _resource(values)
        if make is Constraint and not below.has("replicasMax") and not values.get("excludes"):
            below.error("field-required", "replicasMax is missing: the most replicas there")
        key = (values.get("identity") or values[unique]) if unique else len(objects)
        if key in objects:
            below.error("given-twice", f"{key} is given twice; keep one", unique)
        objects[key] = make(**values)
    if name in _BY_KEY:
        return objects
    return tuple(objects[key] for key in (sorted(objects) if make is TargetCluster else objects))


def _resource(values: dict[str, Any]) -> tuple[GVK, Identity]:
    gvk = GVK.parse(values.pop("api_version"), values.pop("kind"))
    return gvk, Identity(*gvk.group_kind, values.pop("namespace"), values.pop("name"))


def _text(fields: Fields, field: Field) -> str:
    text = fields.text(field.name, field.default)
    if field.name in _TIMES and text and not _is_time(text):
        fields.error("time-malformed", f"{text!r} is no time; write it like 2026-11-21T10:00:00Z", field.name)
    return Health(text) if field.name == "health" else text


def _apis(fields: Fields) -> frozenset[GVK]:
    served = set()
    for index, text in enumerate(fields.texts("apis")):
        api_version, slash, kind = text.rpartition("/")
        if not slash or not kind or not api_version or api_version.count("/") > 1:
            message = f"{text!r} is no kind; write it like apps/v1/Deployment or v1/ConfigMap"
            fields.error("api-malformed", message, "apis", index)
        else:
            served.add(GVK.parse(api_version, kind))
    return frozenset(served)


def _amounts(fields: Fields, name: str) -> Resources:
    entries = fields.any(name)
    if entries is None:
        return {}
    if not isinstance(entries, Mapping):
        fields.error("wrong-type", "must be a map of resources to quantities", name)
        return {}
    amounts: dict[str, int] = {}
    for resource, value in entries.items():
        amount = units(resource, value)
        if amount is None or amount < 0:
            message = f"{value!r} is no quantity; write it like 500m, 2 or 16Gi"
            fields.error("quantity-malformed", message, name, resource)
        else:
            amounts[resource] = amount
    return amounts


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None


def dump_observations(observations: Observations) -> dict[str, Any]:
    """Return the observations as a JSON tree in a fixed order, which reads back equal. An unknown version is v1."""
    versions = {
        workload.identity: workload.gvk
        for _, cluster in sorted(observations.clusters.items())
        for workload in cluster.workloads.values()
    }
    return {"version": 1, **_tree(observations, OBSERVATIONS_SHAPE, versions)}


def _tree(value: object, written: Shape, versions: Mapping[Identity, GVK]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if isinstance(value, Workload):
        tree |= _reference(value.gvk, value.identity)
    for field in written.fields:
        below: Any = getattr(value, _attribute(field.name), None)
        match field.type:
            case FieldType.MAP:
                below = dict(sorted(below.items()))
            case FieldType.TEXTS if below is not None:
                is_apis = field.name == "apis"
                below = sorted(f"{gvk.api_version}/{gvk.kind}" for gvk in below) if is_apis else list(below)
            case FieldType.ANY if below is not None:
                below = {name: _quantity(name, below[name]) for name in sorted(below)}
            case FieldType.OBJECT:
                below = _reference(versions.get(below) or GVK(below.group, "v1", below.kind), below)
            case FieldType.OBJECTS if below is not None and field.shape is not None:
                ordered: Iterable[object] = below if field.name != "placement" else sorted(below)
                if field.name in _BY_KEY:
                    ordered = (below[key] for key in sorted(below))
                below = [_tree(each, field.shape, versions) for each in ordered]
        is_target = isinstance(value, TargetCluster)
        if below or is_target or not (below is None or below == "" or field.name in _IF_ANY):
            tree[field.name] = str(below) if isinstance(below, str) else below
    return tree


def _reference(gvk: GVK, identity: Identity) -> dict[str, str]:
    tree = {"apiVersion": gvk.api_version, "kind": identity.kind}
    return tree | {key: text for key in ("namespace", "name") if (text := getattr(identity, key))}


def _quantity(resource: str, amount: int) -> str:
    if resource == "cpu" or resource.endswith(".cpu"):
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if any(part in resource for part in ("memory", "storage", "hugepages")):
        return next(
            (f"{amount // unit}{suffix}" for unit, suffix in _BINARY if amount and amount % unit == 0), str(amount)
        )
    return str(amount)
