"""Observations in their machine format: the inverse of reading the file. Source: design#observations.

Placements as a text that fits into an object: equal ones stand there once.

Source: ADR 20: the marks of an unreachable cluster cannot report placements to the next leader. If not all fit, those
on one cluster are kept, since they would be placed a second time.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from reconciler.api.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.api.clusters import ClusterObservation, Observations, Workload
from reconciler.api.demand import Resources
from reconciler.api.refs import GVK, Identity
from reconciler.prepared import decompressed

_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def dump_observations(observations: Observations) -> dict[str, Any]:
    """Return the observations as a JSON tree in a fixed order; reading it gives equal observations.

    Defaults are left out. The version in the apiVersion of bindings and constraints is made up if no observed workload
    has it: an identity has none.
    """
    versions = {
        workload.identity: workload.gvk
        for name in sorted(observations.clusters)
        for workload in observations.clusters[name].workloads.values()
    }
    return {
        "version": 1,
        "clusters": [_cluster(observations.clusters[name]) for name in sorted(observations.clusters)],
        "constraints": [_constraint(constraint, versions) for constraint in observations.constraints],
        "bindings": [_binding(observations.previous[identity], versions) for identity in sorted(observations.previous)],
    }


def _cluster(seen: ClusterObservation) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": seen.name, "reachable": seen.reachable}
    if seen.observed_at:
        tree["observedAt"] = seen.observed_at
    if seen.kube_version:
        tree["kubeVersion"] = seen.kube_version
    if seen.apis is not None:
        tree["apis"] = sorted(f"{gvk.api_version}/{gvk.kind}" for gvk in seen.apis)
    tree["pendingRequests"] = _amounts(seen.pending_requests)
    if seen.pending:
        tree["pendingPods"] = [
            {
                "namespace": group.namespace,
                "pods": group.pods,
                "names": list(group.names),
                **_filled(refusal=group.refusal),
            }
            for group in seen.pending
        ]
    tree["quotas"] = [
        {"namespace": quota.namespace, "hard": _amounts(quota.hard), "used": _amounts(quota.used)}
        for quota in seen.quotas
    ]
    if seen.nodes is not None:
        tree["nodes"] = [
            {
                "name": node.name,
                "ready": node.ready,
                "unschedulable": node.unschedulable,
                "labels": dict(sorted(node.labels.items())),
                "taints": [_filled(key=taint.key, value=taint.value, effect=taint.effect) for taint in node.taints],
                "allocatable": _amounts(node.allocatable),
                "requested": _amounts(node.requested),
            }
            for node in seen.nodes
        ]
    tree["workloads"] = [_workload(seen.workloads[identity]) for identity in sorted(seen.workloads)]
    return tree


def _workload(workload: Workload) -> dict[str, Any]:
    tree = {
        **_resource(workload.gvk, workload.identity),
        "replicas": workload.replicas,
        "ready": workload.ready,
        "unschedulable": workload.unschedulable,
        "health": str(workload.health),
    }
    since = _filled(unschedulableSince=workload.unschedulable_since, unhealthySince=workload.unhealthy_since)
    rare: dict[str, Any] = {"endedByItself": True} if workload.ended_by_itself else {}
    if workload.missing:
        rare["missing"] = workload.missing
    if workload.without_node is not None:
        rare["withoutNode"] = workload.without_node
    if workload.established is not None:
        rare["established"] = workload.established
    return {**tree, **since, **rare}


def _constraint(constraint: Constraint, versions: dict[Identity, GVK]) -> dict[str, Any]:
    tree = {
        "resource": _reference(constraint.identity, versions),
        "cluster": constraint.cluster,
        "replicasMax": constraint.replicas_max,
        **_filled(until=constraint.until, reason=constraint.reason),
    }
    return {**tree, "excludes": True} if constraint.excludes else tree


def _binding(placement: PreviousPlacement, versions: dict[Identity, GVK]) -> dict[str, Any]:
    by_name = {target.cluster: target.replicas for target in placement.targets}
    targets = [{"cluster": name, "replicas": by_name[name]} for name in sorted(by_name)]
    return {
        "resource": _reference(placement.identity, versions),
        "placement": targets,
        **_filled(affinityName=placement.affinity_name),
    }


def _reference(identity: Identity, versions: dict[Identity, GVK]) -> dict[str, Any]:
    known = versions.get(identity)
    return _resource(known or GVK(identity.group, "v1", identity.kind), identity)


def _resource(gvk: GVK, identity: Identity) -> dict[str, Any]:
    return _filled(apiVersion=gvk.api_version, kind=identity.kind, namespace=identity.namespace, name=identity.name)


def _filled(**fields: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _amounts(amounts: Resources) -> dict[str, str]:
    return {name: _quantity(name, amounts[name]) for name in sorted(amounts)}


def _quantity(resource: str, amount: int) -> str:
    if resource == "cpu" or resource.endswith(".cpu"):
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if any(part in resource for part in ("memory", "storage", "hugepages")):
        return next(
            (f"{amount // unit}{suffix}" for unit, suffix in _BINARY if amount and amount % unit == 0), str(amount)
        )
    return str(amount)


BYTES_MAX: Final = 64 * 2**20
"""Limit of the unpacked size: who can write the ConfigMap must not fill the memory."""


def packed_placements(placements: Mapping[Identity, PreviousPlacement], bytes_max: int) -> str:
    """As text of at most so many bytes; empty where not even those on one cluster fit."""
    single = {identity: found for identity, found in placements.items() if len(found.targets) == 1}
    for chosen in (placements, single):
        alike: dict[tuple[TargetCluster, ...], int] = {}
        rows = [
            (*identity, found.affinity_name, alike.setdefault(found.targets, len(alike)))
            for identity, found in sorted(chosen.items())
        ]
        text = pack({"alike": [[tuple(target) for target in targets] for targets in alike], "placed": rows})
        if len(text) <= bytes_max:
            return text
    return ""


def read_placements(text: str) -> dict[Identity, PreviousPlacement]:
    """Return the unpacked placements. Malformed ones are left out."""
    found = unpack(text, BYTES_MAX)
    if not isinstance(found, dict):
        return {}
    placements: dict[Identity, PreviousPlacement] = {}
    alike, rows = found.get("alike"), found.get("placed")
    if not isinstance(alike, list) or not isinstance(rows, list):
        return {}
    for row in rows:
        # Another version may have written it, or a person.
        with suppress(TypeError, ValueError, IndexError):
            *names, group, index = row
            identity = Identity(*map(_text, names))
            targets = tuple(TargetCluster(_text(cluster), _replicas(count)) for cluster, count in alike[index])
            if targets:
                placements[identity] = PreviousPlacement(identity=identity, targets=targets, affinity_name=_text(group))
    return placements


def pack(tree: Any) -> str:
    """A JSON tree as text for a field of an object."""
    return base64.b64encode(zlib.compress(orjson.dumps(tree))).decode()


def unpack(text: str, bytes_max: int) -> Any:
    """Return the tree; None: invalid, or larger than that. A writer of the object must not fill the memory."""
    try:
        return orjson.loads(decompressed(base64.b64decode(text, validate=True), bytes_max, is_gzip=False))
    except ValueError:  # of base64, zlib or JSON
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _replicas(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise TypeError
    return value
