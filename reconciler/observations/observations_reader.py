"""The observations file: placement can be computed from it without access to the clusters.

Source: design#observations. Strict: an unknown field or a wrong type is an error with its line and field path.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from datetime import datetime

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
    Fields,
    Findings,
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
    integer_field("missing", "Pods that it wants and that are not there yet.", default="0"),
    integer_field("withoutNode", "Pods of it that have no node; absent: not known."),
    integer_field("established", "With how many replicas it has served, as the journal says."),
    integer_field("unschedulable", "Pods of its newest revision that find no node.", default="0"),
    text_field("unschedulableSince", "Since when, as RFC 3339."),
    text_field("health", "Health.", values=exactly(*(str(health) for health in Health)), default="Unknown"),
    text_field("unhealthySince", "Since when, as RFC 3339."),
    flag_field(
        "endedByItself",
        "Whether it failed for good by its own fault, so that no other cluster takes it over.",
        default="false",
    ),
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


def parse_observations(data: bytes, path: str) -> tuple[Observations | None, tuple[Problem, ...]]:
    """The observations of a YAML or JSON file, None when any of it is wrong; and every problem, in order.

    Larger files than those of a store are read when they are JSON, without line numbers.
    """
    document, problems = _document(data, path)
    if document is None:
        return None, problems
    reader = _Reader(document)
    observations = reader.observations()
    found = (*problems, *reader.report.sorted())
    return (None if any(p.severity is Severity.ERROR for p in found) else observations), found


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


class _Reader:
    """One file while it is read; problems go into `report`."""

    def __init__(self, document: Document) -> None:
        self.report = Findings(document, OBSERVATIONS_SHAPE)
        self._top = Fields(self.report, OBSERVATIONS_SHAPE, document.body)

    def observations(self) -> Observations:
        version = self._top.integer("version")
        if version not in (None, 1):
            self.report.error("version-unknown", f"version {version} is not known; this reads version 1", "version")
        clusters: dict[str, ClusterObservation] = {}
        for fields in self._top.children("clusters"):
            self._once(fields.text("name"), clusters, fields, "name")
            clusters[fields.text("name")] = self._cluster(fields)
        previous: dict[Identity, PreviousPlacement] = {}
        for fields in self._top.children("bindings"):
            targets: dict[str, TargetCluster] = {}
            for below in fields.children("placement"):
                cluster = below.text("cluster")
                self._once(cluster, targets, below, "cluster")
                replicas = self._count(below, "replicas") if below.has("replicas") else None
                targets[cluster] = TargetCluster(cluster=cluster, replicas=replicas)
            placement = PreviousPlacement(
                identity=_identity_below(fields),
                targets=tuple(targets[name] for name in sorted(targets)),
                affinity_name=fields.text("affinityName"),
            )
            self._once(placement.identity, previous, fields, "resource")
            previous[placement.identity] = placement
        constraints = tuple(self._constraint(fields) for fields in self._top.children("constraints"))
        return Observations(clusters=clusters, constraints=constraints, previous=previous)

    def _cluster(self, fields: Fields) -> ClusterObservation:
        workloads: dict[Identity, Workload] = {}
        for below in fields.children("workloads"):
            workload = self._workload(below)
            self._once(workload.identity, workloads, below, "name")
            workloads[workload.identity] = workload
        reachable = fields.flag("reachable")
        return ClusterObservation(
            name=fields.text("name"),
            reachable=True if reachable is None else reachable,
            observed_at=self._time(fields, "observedAt"),
            kube_version=fields.text("kubeVersion"),
            apis=self._apis(fields),
            pending_requests=self._amounts(fields, "pendingRequests"),
            pending=tuple(
                PendingPods(
                    namespace=pods.text("namespace"),
                    pods=self._count(pods, "pods"),
                    names=tuple(pods.texts("names")),
                    refusal=pods.text("refusal"),
                )
                for pods in fields.children("pendingPods")
            ),
            quotas=tuple(
                Quota(
                    namespace=quota.text("namespace"),
                    hard=self._amounts(quota, "hard"),
                    used=self._amounts(quota, "used"),
                )
                for quota in fields.children("quotas")
            ),
            nodes=self._nodes(fields) if fields.has("nodes") else None,
            workloads=workloads,
        )

    def _nodes(self, fields: Fields) -> tuple[ClusterNode, ...]:
        nodes: dict[str, ClusterNode] = {}
        for below in fields.children("nodes"):
            name, ready = below.text("name"), below.flag("ready")
            self._once(name, nodes, below, "name")
            nodes[name] = ClusterNode(
                name=name,
                ready=True if ready is None else ready,
                unschedulable=bool(below.flag("unschedulable")),
                labels=below.text_map("labels"),
                taints=tuple(
                    Taint(key=t.text("key"), value=t.text("value"), effect=t.text("effect", "NoSchedule"))
                    for t in below.children("taints")
                ),
                allocatable=self._amounts(below, "allocatable"),
                requested=self._amounts(below, "requested"),
            )
        return tuple(nodes.values())

    def _workload(self, fields: Fields) -> Workload:
        gvk, identity = _resource(fields)
        return Workload(
            gvk=gvk,
            identity=identity,
            replicas=self._count(fields, "replicas"),
            ready=self._count(fields, "ready"),
            unschedulable=self._count(fields, "unschedulable"),
            unschedulable_since=self._time(fields, "unschedulableSince"),
            health=Health(fields.text("health", str(Health.UNKNOWN))),
            unhealthy_since=self._time(fields, "unhealthySince"),
            missing=self._count(fields, "missing"),
            without_node=self._count(fields, "withoutNode") if fields.has("withoutNode") else None,
            ended_by_itself=fields.flag("endedByItself") is True,
            established=self._count(fields, "established") if fields.has("established") else None,
        )

    def _constraint(self, fields: Fields) -> Constraint:
        if not fields.has("replicasMax") and not fields.flag("excludes"):
            fields.error("field-required", "replicasMax is missing: the most replicas there")
        return Constraint(
            identity=_identity_below(fields),
            cluster=fields.text("cluster"),
            replicas_max=self._count(fields, "replicasMax"),
            reason=fields.text("reason"),
            until=self._time(fields, "until"),
            excludes=bool(fields.flag("excludes")),
        )

    def _apis(self, fields: Fields) -> frozenset[GVK] | None:
        if not fields.has("apis"):
            return None
        served = set()
        for index, text in enumerate(fields.texts("apis")):
            api_version, slash, kind = text.rpartition("/")
            if not slash or not kind or not api_version or api_version.count("/") > 1:
                message = f"{text!r} is no kind; write it like apps/v1/Deployment or v1/ConfigMap"
                fields.error("api-malformed", message, "apis", index)
            else:
                served.add(GVK.parse(api_version, kind))
        return frozenset(served)

    def _amounts(self, fields: Fields, name: str) -> Resources:
        given = fields.any(name)
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            fields.error("wrong-type", "must be a map of resources to quantities", name)
            return {}
        amounts: dict[str, int] = {}
        for resource, value in given.items():
            amount = units(resource, value)
            if amount is None or amount < 0:
                message = f"{value!r} is no quantity; write it like 500m, 2 or 16Gi"
                fields.error("quantity-malformed", message, name, resource)
            else:
                amounts[resource] = amount
        return amounts

    def _count(self, fields: Fields, name: str) -> int:
        number = fields.integer(name) or 0
        if number < 0:
            fields.error("number-negative", f"{name} is {number}; it cannot be less than 0", name)
        return number

    def _time(self, fields: Fields, name: str) -> str:
        text = fields.text(name)
        if text and not _is_time(text):
            fields.error("time-malformed", f"{text!r} is no time; write it like 2026-11-21T10:00:00Z", name)
        return text

    def _once(self, key: Hashable, seen: Container[Hashable], fields: Fields, name: str) -> None:
        if key in seen:
            fields.error("given-twice", f"{key} is given twice; keep one", name)


def _resource(fields: Fields) -> tuple[GVK, Identity]:
    gvk = GVK.parse(fields.text("apiVersion"), fields.text("kind"))
    return gvk, Identity(gvk.group, gvk.kind, fields.text("namespace"), fields.text("name"))


def _identity_below(fields: Fields) -> Identity:
    below = fields.child("resource")
    return _resource(below)[1] if below is not None else Identity("", "", "", "")


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None
