"""Builds what ticks look at from the compact form that the case tables under tests/cases/ticks use.

A case is a mapping. `clusters`: names, or name to labels. `workloads`: name to fields that come over those of the case;
without it the case describes one workload, `web`. Of a workload: `kind`, `replicas`, `cpu` (of a pod), `image`,
`tolerates` (taint keys), `policy`, `placed` (the placement until now), `seen` (cluster to what runs there). Of what is
seen there: `replicas` (default: as placed), `ready`, `waiting` with `since_s` (how long pods wait), `sick_s` (how long
it is unhealthy), `by_itself` (it failed for good by its own fault), `held` (node to whole CPUs). `nodes`: cluster to
its nodes; one with 8 CPUs by default, None: they cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.clusters import ClusterNode, ClusterObservation, Health, Observations, Taint, Workload
from reconciler.api.demand import Resources, resources
from reconciler.api.fleet import Fleet
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import Schedule, schedule_fleet
from tests.fleets import fleet_of, member

Case = Mapping[str, Any]

NOW = "2026-11-21T10:00:00Z"
API_VERSIONS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1",
                "Pod": "v1", "ConfigMap": "v1"}  # fmt: skip
DIVISIONS: dict[str, dict[str, Any]] = {
    "dynamic": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
    "aggregated": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    "duplicated": {"replicaSchedulingType": "Duplicated"},
    "static": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
}
DIVISIONS["gang"] = {**DIVISIONS["dynamic"], "customSchedulingType": "Gang"}


def moment(ago_s: float = 0) -> str:
    return (datetime.fromisoformat(NOW) - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def overlaid(case: Case, over: Case) -> dict[str, Any]:
    """The case with fields over it; mappings are joined."""
    joined = dict(case)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(joined.get(key), Mapping)
        joined[key] = overlaid(joined[key], value) if both else value
    return joined


def workloads(case: Case) -> dict[str, dict[str, Any]]:
    return {name: overlaid(case, given or {}) for name, given in case.get("workloads", {"web": {}}).items()}


def identity(name: str, given: Case) -> Identity:
    api_version = API_VERSIONS[given.get("kind", "Deployment")]
    return Identity(api_version.rpartition("/")[0], given.get("kind", "Deployment"), "demo", name)


def fleet(case: Case) -> Fleet:
    """The store of a case, parsed."""
    clusters = case.get("clusters", ["m1", "m2"])
    labels = clusters if isinstance(clusters, Mapping) else {name: {} for name in clusters}
    documents = [{"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"},
                  "spec": case.get("fleet", {})}]  # fmt: skip
    documents += [member(name, **(given or {})) for name, given in labels.items()]
    for name, given in workloads(case).items():
        if not given.get("absent"):
            documents.append(template(name, given))
        documents.append(policy(name, given))
    return fleet_of({"store.yaml": documents})


def template(name: str, given: Case) -> dict[str, Any]:
    kind, labels = given.get("kind", "Deployment"), {"app": name}
    metadata = {"name": name, "namespace": "demo"}
    head = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata}
    if kind == "ConfigMap":
        return {**head, "data": {}}
    requests = {key: str(given[key]) for key in ("cpu", "memory") if key in given} or {"cpu": "1"}
    container = {"name": "main", "image": given.get("image", "nginx:1"), "resources": {"requests": requests}}
    pod: dict[str, Any] = {"containers": [container], "nodeSelector": given.get("node_selector", {})}
    pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in given.get("tolerates", [])]
    if given.get("config"):
        container["envFrom"] = [{"configMapRef": {"name": given["config"]}}]
    if kind == "Pod":
        return {**head, "spec": pod}
    spec: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
        spec["parallelism"] = spec["completions"] = given.get("replicas", 1)
        return {**head, "spec": spec}
    if kind != "DaemonSet":
        spec["replicas"] = given.get("replicas", 1)
    if given.get("claims"):
        spec["volumeClaimTemplates"] = [{"metadata": {"name": claim}, "spec": {}} for claim in given["claims"]]
    return {**head, "spec": {**spec, "selector": {"matchLabels": labels}}}


def policy(name: str, given: Case) -> dict[str, Any]:
    """A policy as the store has it. Karmada's group with `karmada`; else ACK's, in which groups are tiers."""
    terms = given.get("policy", {})
    kind = given.get("kind", "Deployment")
    scheduling = dict(DIVISIONS[terms.get("division", "dynamic")])
    if terms.get("division") == "static":
        weights = terms.get("weights", {"m1": 1, "m2": 1})
        scheduling["weightPreference"] = {
            "staticWeightList": [
                {"targetCluster": {"clusterNames": [cluster]}, "weight": weight} for cluster, weight in weights.items()
            ]
        }
    placement: dict[str, Any] = {"replicaScheduling": scheduling}
    groups = {group: {"clusterNames": names} for group, names in terms.get("groups", {}).items()}
    if groups:
        placement["clusterAffinities"] = [{"affinityName": group, **names} for group, names in groups.items()]
    elif "affinity" in terms:
        placement["clusterAffinity"] = {"clusterNames": terms["affinity"]}
    if "only" in terms:
        spread = {"spreadByField": "cluster", "minGroups": terms["only"], "maxGroups": terms["only"]}
        placement["spreadConstraints"] = [spread]
    spec: dict[str, Any] = {
        "resourceSelectors": [{"apiVersion": API_VERSIONS[kind], "kind": kind, "name": name}],
        "placement": placement,
        "propagateDeps": terms.get("deps", True),
    }
    if terms.get("ecs"):
        spec["autoScaling"] = {"ecsProvision": True}
    if "failover" in terms:
        spec["failover"] = {"application": terms["failover"]}
    api = "policy.karmada.io" if terms.get("karmada") else "policy.one.alibabacloud.com"
    return {"apiVersion": f"{api}/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name, "namespace": "demo"}, "spec": spec}  # fmt: skip


def observations(case: Case, now_ago_s: float = 0, constraints: tuple[Constraint, ...] = ()) -> Observations:
    """Return what is known of the clusters, so many seconds ago."""
    given = workloads(case)
    names = list(case.get("clusters", ["m1", "m2"]))
    names += [name for name in case.get("seen", {}) if name not in names]
    found = {identity(name, fields): fields for name, fields in given.items()}
    return Observations(
        clusters={name: _cluster(name, case, found, now_ago_s) for name in names},
        constraints=constraints,
        previous={
            which: PreviousPlacement(identity=which, targets=targets(fields["placed"]))
            for which, fields in found.items()
            if "placed" in fields
        },
    )


def targets(given: Mapping[str, Any]) -> tuple[TargetCluster, ...]:
    found = sorted((name, count) for name, count in given.items() if count != "gone")
    return tuple(TargetCluster(cluster=name, replicas=count) for name, count in found)


def _cluster(name: str, case: Case, found: Mapping[Identity, Case], now_ago_s: float) -> ClusterObservation:
    nodes = case.get("nodes", {}).get(name, {"n1": {}})
    seen = {
        which: _workload(which, fields["seen"][name] or {}, (fields.get("placed") or {}).get(name, 0), now_ago_s)
        for which, fields in found.items()
        if name in fields.get("seen", {})
    }
    return ClusterObservation(
        name=name,
        reachable=name not in case.get("down", []),
        nodes=None if nodes is None else tuple(_node(node, given) for node, given in nodes.items() if given != "gone"),
        workloads=seen,
    )


def _workload(which: Identity, given: Case, placed: Any, now_ago_s: float) -> Workload:
    sick_s, waiting = given.get("sick_s"), given.get("waiting", 0)
    health = Health.HEALTHY if sick_s is None else Health.UNHEALTHY
    held = given.get("held")
    return Workload(
        gvk=GVK(which.group, "v1", which.kind),
        identity=which,
        replicas=given.get("replicas", placed or 0),
        ready=given.get("ready", 0),
        unschedulable=waiting,
        unschedulable_since=moment(now_ago_s + given.get("since_s", 31)) if waiting else "",
        health=Health(given.get("health", health)),
        unhealthy_since="" if sick_s is None else moment(now_ago_s + sick_s),
        ended_by_itself=given.get("by_itself", False),
        without_node=given.get("without_node", waiting),
        held=None if held is None else {node: _room(cpus) for node, cpus in held.items()},
    )


def _room(cpus: int) -> Resources:
    return {"cpu": cpus * 1000, "pods": cpus}


def _node(name: str, given: Case) -> ClusterNode:
    cpus, used = given.get("cpu", 8), given.get("used", 0)
    return ClusterNode(
        name=name,
        ready=given.get("ready", True),
        unschedulable=given.get("cordoned", False),
        labels=given.get("labels", {}),
        taints=tuple(_taint(text) for text in given.get("taints", ())),
        allocatable=resources({"cpu": cpus, "memory": "1Ti", "pods": given.get("pods", 110)}),
        requested=resources({"cpu": used, "pods": used}),
    )


def _taint(text: str) -> Taint:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def decided(case: Case, seen: Observations, ago_s: float = 0) -> Schedule:
    """The schedule that the tick looks at, made under the constraints of the observations."""
    return schedule_fleet(fleet(case), seen, moment(ago_s), interpreters=BUILT_IN_KINDS)
