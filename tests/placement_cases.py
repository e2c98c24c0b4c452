"""Builds placement requests from the compact form that the case tables under tests/cases/placement use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.clusters import (
    Cluster,
    ClusterNode,
    ClusterObservation,
    Observations,
    PendingPods,
    Quota,
    Taint,
    Workload,
)
from reconciler.api.demand import Component, Demand, NodeTerm, PodShape, resources
from reconciler.api.fleet import FleetSettings
from reconciler.api.policies import (
    AffinityMode,
    AffinityTerm,
    ClusterAffinity,
    Division,
    Flavor,
    LabelRequirement,
    LabelSelector,
    Operator,
    Placement,
    PropagationPolicy,
    ReplicaScheduling,
    SpreadConstraint,
    StaticWeight,
    Toleration,
)
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.placement import PlacementItem, PlacementRequest

Case = Mapping[str, Any]

NOW = "2026-11-21T10:00:00Z"
SOURCE = Source("policies/web.yaml", 1)
API_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ConfigMap": "v1",
    "Service": "v1",
    "Pod": "v1",
    "PyTorchJob": "kubeflow.org/v1",
}


def request_of(case: Case) -> PlacementRequest:
    """The request of a case: its workloads (or the one that the case itself describes) with their policies."""
    clusters = {name: cluster(name, given or {}) for name, given in _named(case.get("clusters", ["m1", "m2"]))}
    workloads = [{**case, **given} for given in case.get("workloads", [{}])]
    items = tuple(item(given) for given in workloads)
    return PlacementRequest(
        items=items,
        clusters=clusters,
        observations=Observations(
            clusters=observations(case),
            constraints=tuple(c for given in workloads for c in constraints(given)),
            previous={identity(given): previous(given) for given in workloads if given.get("previous") is not None},
        ),
        settings=FleetSettings(partial=case.get("partial", False)),
        now=case.get("now", NOW),
        fresh=case.get("fresh", False),
        priority_classes=case.get("priority_classes", {}),
        copies={identity(given): given["written"] for given in workloads if "written" in given},
    )


def _named(given: Iterable[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(given.items()) if isinstance(given, Mapping) else [(name, {}) for name in given]


def gvk(case: Case) -> GVK:
    kind = case.get("kind", "Deployment")
    return GVK.parse(API_VERSIONS[kind], kind)


def identity(case: Case) -> Identity:
    group, _, kind = gvk(case)
    return Identity(group, kind, case.get("namespace", "demo"), case.get("workload", "web"))


def item(case: Case) -> PlacementItem:
    return PlacementItem(
        identity=identity(case),
        gvk=gvk(case),
        policy=policy(case.get("policy", {})),
        demand=demand(case),
        has_completions=case.get("completions") is not None,
    )


def cluster(name: str, given: Mapping[str, Any]) -> Cluster:
    return Cluster(
        name=name,
        labels=given.get("labels", {}),
        provider=given.get("provider", ""),
        region=given.get("region", ""),
        zones=tuple(given.get("zones", ())),
        taints=tuple(taint(text) for text in given.get("taints", ())),
    )


def taint(text: str) -> Taint:
    """`key=value:Effect` or `key:Effect`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key=key, value=value, effect=effect)


def demand(case: Case) -> Demand:
    components = tuple(
        Component(name=name, replicas=part.get("replicas", 1), shape=shape(part))
        for name, part in case.get("components", {}).items()
    )
    return Demand(
        replicas=case.get("replicas"),
        shape=shape(case),
        components=components,
        is_divisible=case.get("divisible", True),
    )


def shape(given: Mapping[str, Any]) -> PodShape:
    requests = given.get("requests", {"cpu": 1})
    return PodShape(
        requests=tuple(sorted(resources(requests).items())),
        node_selector=tuple(sorted(given.get("nodeSelector", {}).items())),
        node_terms=tuple(
            NodeTerm(labels=_requirements(term.get("labels", [])), fields=_requirements(term.get("fields", [])))
            for term in given.get("nodeTerms", [])
        ),
        tolerations=tuple(tuple(toleration) for toleration in given.get("podTolerations", [])),
    )


def _requirements(given: Iterable[list[Any]]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple((key, operator, tuple(values)) for key, operator, *values in given)


def policy(given: Mapping[str, Any]) -> PropagationPolicy:
    tiers = given.get("mode", "exclusive") == "tiers"
    terms = tuple(
        AffinityTerm(
            name=name,
            affinity=affinity(group.get("clusters") if isinstance(group, Mapping) else group),
            overflow=tuple(
                AffinityTerm(name=inner, affinity=affinity(members))
                for inner, members in (group.get("overflow", {}) if isinstance(group, Mapping) else {}).items()
            ),
        )
        for name, group in given.get("groups", {}).items()
    )
    return PropagationPolicy(
        ref=PolicyRef("PropagationPolicy", "demo", given.get("name", "web")),
        flavor=Flavor.ACK if tiers else Flavor.KARMADA,
        source=SOURCE,
        placement=Placement(
            affinity=affinity(given["affinity"]) if "affinity" in given else None,
            terms=terms,
            tolerations=tuple(toleration(t) for t in given.get("tolerations", [])),
            spread=tuple(spread(s) for s in given.get("spread", [])),
            scheduling=scheduling(given),
            source=SOURCE,
        ),
        priority_class=given.get("priorityClass", ""),
        ecs_provision=given.get("ecsProvision", False),
        affinity_mode=AffinityMode.TIERS if tiers else AffinityMode.EXCLUSIVE,
    )


def scheduling(given: Mapping[str, Any]) -> ReplicaScheduling:
    """`weights` is a list of [cluster names or affinity, weight], or short for it a mapping of names to weights."""
    weights = given.get("weights")
    entries = [([name], weight) for name, weight in weights.items()] if isinstance(weights, Mapping) else weights or []
    return ReplicaScheduling(
        division=Division(given.get("division", "duplicated")),
        static_weights=tuple(StaticWeight(target=affinity(target), weight=weight) for target, weight in entries),
        has_weight_preference=given.get("hasWeightPreference", weights is not None),
        gang=given.get("gang", False),
    )


def spread(given: Mapping[str, Any]) -> SpreadConstraint:
    return SpreadConstraint(
        by_field=given.get("field", ""),
        by_label=given.get("label", ""),
        min_groups=given.get("min", 1),
        max_groups=given.get("max", 0),
    )


def toleration(given: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=given.get("key", ""),
        operator=given.get("operator", "Equal"),
        value=given.get("value", ""),
        effect=given.get("effect", ""),
    )


def affinity(given: Any) -> ClusterAffinity:
    """A list of names, or a mapping with names, exclude, labels and fields ([key, operator, values…])."""
    if not isinstance(given, Mapping):
        return ClusterAffinity(cluster_names=tuple(given or ()))
    labels = given.get("labels")
    return ClusterAffinity(
        cluster_names=tuple(given.get("names", ())),
        exclude=tuple(given.get("exclude", ())),
        labels=None
        if labels is None
        else LabelSelector(
            requirements=tuple(
                LabelRequirement(key=key, operator=Operator.IN, values=frozenset({value}))
                for key, value in labels.items()
            )
        ),
        fields=tuple(
            LabelRequirement(key=key, operator=Operator(operator), values=frozenset(values))
            for key, operator, *values in given.get("fields", [])
        ),
    )


def observations(case: Case) -> dict[str, ClusterObservation]:
    """`free`: whole CPUs on one node per cluster; `observed` describes clusters in full and comes on top."""
    found = {name: _roomy(name, cpus) for name, cpus in case.get("free", {}).items()}
    for name, given in case.get("observed", {}).items():
        base = found.get(name, ClusterObservation(name=name))
        found[name] = ClusterObservation(
            name=name,
            reachable=given.get("reachable", True),
            apis=frozenset(GVK.parse(*text.rsplit("/", 1)) for text in given["apis"]) if "apis" in given else None,
            pending_requests=resources(given.get("pendingRequests", {})),
            pending=tuple(
                PendingPods(
                    namespace=p["namespace"], pods=p["pods"], names=tuple(p["names"]), refusal=p.get("refusal", "")
                )
                for p in given.get("pending", [])
            ),
            quotas=tuple(
                Quota(namespace=q["namespace"], hard=resources(q["hard"]), used=resources(q.get("used", {})))
                for q in given.get("quotas", [])
            ),
            nodes=tuple(node(n) for n in given["nodes"]) if given.get("nodes") is not None else base.nodes,
            workloads={
                identity(w): Workload(
                    gvk=gvk(w),
                    identity=identity(w),
                    replicas=w["replicas"],
                    assigned=w.get("assigned"),
                    missing=w.get("missing", 0),
                )
                for w in given.get("workloads", [])
            },
            pods={identity({"workload": w}): n for w, n in given["pods"].items()} if "pods" in given else None,
        )
    return found


def _roomy(name: str, cpus: int) -> ClusterObservation:
    amounts = {"cpu": cpus * 1000, "memory": 2**50, "pods": 10**6}
    return ClusterObservation(name=name, nodes=(ClusterNode(name=f"{name}-node", allocatable=amounts),))


def node(given: Mapping[str, Any]) -> ClusterNode:
    return ClusterNode(
        name=given["name"],
        ready=given.get("ready", True),
        unschedulable=given.get("unschedulable", False),
        labels=given.get("labels", {}),
        taints=tuple(taint(text) for text in given.get("taints", ())),
        allocatable=resources(given.get("allocatable", {})),
        requested=resources(given.get("requested", {})),
    )


def previous(case: Case) -> PreviousPlacement:
    return PreviousPlacement(
        identity=identity(case),
        targets=tuple(TargetCluster(cluster=name, replicas=count) for name, count in _named_counts(case["previous"])),
        affinity_name=case.get("group_in_use", ""),
    )


def _named_counts(given: Iterable[str] | Mapping[str, int | None]) -> list[tuple[str, int | None]]:
    return sorted(given.items()) if isinstance(given, Mapping) else [(name, None) for name in sorted(given)]


def constraints(case: Case) -> list[Constraint]:
    caps = [
        Constraint(
            identity=identity(case), cluster=name, replicas_max=most, reason="pods wait", until=case.get("until", "")
        )
        for name, most in case.get("caps", {}).items()
    ]
    return caps + [
        Constraint(
            identity=identity(case),
            cluster=name,
            replicas_max=0,
            reason="unhealthy",
            until=case.get("until", ""),
            excludes=True,
        )
        for name in case.get("excluded", [])
    ]
