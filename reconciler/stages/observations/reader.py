"""The observations file: placement can be computed from it without access to the clusters.

Source: design#observations. Strict: an unknown field or a wrong type is an error with its line and field path.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from datetime import datetime

import orjson

from reconciler.model.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.model.cluster import Taint
from reconciler.model.demand import Resources, units
from reconciler.model.observation import (
    ClusterObservation,
    Health,
    Node,
    Observations,
    PendingPods,
    Quota,
    Workload,
)
from reconciler.model.problem import Document, Problem, Severity, Source
from reconciler.model.refs import GVK, Identity
from reconciler.stages.documents import Fields, Report
from reconciler.stages.observations.dump import dump_observations
from reconciler.stages.observations.fields import OBSERVATIONS_SHAPE
from reconciler.stages.yaml import MAX_BYTES, read_yaml

__all__ = ["dump_observations", "parse_observations"]


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
        self.report = Report(document, OBSERVATIONS_SHAPE)
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
            placement = self._binding(fields)
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

    def _nodes(self, fields: Fields) -> tuple[Node, ...]:
        nodes: dict[str, Node] = {}
        for below in fields.children("nodes"):
            name, ready = below.text("name"), below.flag("ready")
            self._once(name, nodes, below, "name")
            nodes[name] = Node(
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

    def _binding(self, fields: Fields) -> PreviousPlacement:
        targets: dict[str, TargetCluster] = {}
        for below in fields.children("placement"):
            cluster = below.text("cluster")
            self._once(cluster, targets, below, "cluster")
            replicas = self._count(below, "replicas") if below.has("replicas") else None
            targets[cluster] = TargetCluster(cluster=cluster, replicas=replicas)
        return PreviousPlacement(
            identity=_identity_below(fields),
            targets=tuple(targets[name] for name in sorted(targets)),
            affinity_name=fields.text("affinityName"),
        )

    def _constraint(self, fields: Fields) -> Constraint:
        if not fields.has("replicasMax") and not fields.flag("excludes"):
            self.report.error("field-required", "replicasMax is missing: the most replicas there", *fields.steps)
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
                self.report.error("api-malformed", message, *fields.path("apis", index))
            else:
                served.add(GVK.parse(api_version, kind))
        return frozenset(served)

    def _amounts(self, fields: Fields, name: str) -> Resources:
        given = fields.any(name)
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            self.report.error("wrong-type", "must be a map of resources to quantities", *fields.path(name))
            return {}
        amounts: dict[str, int] = {}
        for resource, value in given.items():
            amount = units(resource, value)
            if amount is None or amount < 0:
                message = f"{value!r} is no quantity; write it like 500m, 2 or 16Gi"
                self.report.error("quantity-malformed", message, *fields.path(name, resource))
            else:
                amounts[resource] = amount
        return amounts

    def _count(self, fields: Fields, name: str) -> int:
        number = fields.integer(name) or 0
        if number < 0:
            self.report.error("number-negative", f"{name} is {number}; it cannot be less than 0", *fields.path(name))
        return number

    def _time(self, fields: Fields, name: str) -> str:
        text = fields.text(name)
        if text and not _is_time(text):
            message = f"{text!r} is no time; write it like 2026-11-21T10:00:00Z"
            self.report.error("time-malformed", message, *fields.path(name))
        return text

    def _once(self, key: Hashable, seen: Container[Hashable], fields: Fields, name: str) -> None:
        if key in seen:
            self.report.error("given-twice", f"{key} is given twice; keep one", *fields.path(name))


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
