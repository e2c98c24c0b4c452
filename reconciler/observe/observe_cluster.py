"""Nodes, quotas and workloads of a member; unplaceable pods take no capacity. Source: design#waiting-pods."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from reconciler.api.clusters import ClusterNode, ClusterObservation, Listed, LiveObject, PendingPods, Unlisted, Workload
from reconciler.api.demand import Resources
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.containment import fault_fields
from reconciler.errors import Forbidden, KindFault, KindNotServed, ObjectNotFound
from reconciler.incremental import by_key
from reconciler.kinds.pod_template import pod_shape
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.pod_shapes import Pod
from reconciler.kube.served_kinds import unlisted
from reconciler.observe.model import (
    PodRequests,
    Unscheduled,
    held_room,
    newest_replica_sets,
    nodes_with_room,
    quota,
    replica_sets_by_owner,
    unscheduled,
    workload,
)
from reconciler.observe.pod_counts import is_waiting, owners, pod_counts, pod_signs
from reconciler.placement import NAMES_MAX, refusal_of_all


def pending_pods(
    pods: Iterable[Pod], nodes: tuple[ClusterNode, ...], requests: PodRequests
) -> tuple[tuple[PendingPods, ...], Resources]:
    """Return waiting pods by namespace and refusal, and requests of those that fit. `nodes` empty: none is refused."""
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    total: Counter[str] = Counter()
    refusals: dict[bytes, str] = {}
    for pod in pods:
        if not is_waiting(pod) or pod.spec.scheduling_gates:
            continue
        spec = msgspec.json.encode(pod.spec)
        refusal = refusals.get(spec)
        if refusal is None:
            refusal = refusals[spec] = refusal_of_all(nodes, pod_shape(msgspec.to_builtins(pod.spec)))
        names[pod.metadata.namespace, refusal].append(pod.metadata.name)
        if not refusal:
            total.update(requests.of(pod))
    groups = tuple(
        PendingPods(namespace=namespace, pods=len(pods_of), names=tuple(sorted(pods_of)[:NAMES_MAX]), refusal=refusal)
        for (namespace, refusal), pods_of in sorted(names.items())
    )
    return groups, dict(sorted(total.items()))


log = logging.getLogger("reconciler")

_T = TypeVar("_T")

NODE, POD = GVK("", "v1", "Node"), GVK("", "v1", "Pod")
REPLICA_SET = GVK("apps", "v1", "ReplicaSet")
RESOURCE_QUOTA = GVK("", "v1", "ResourceQuota")


async def observe(
    member: MemberCluster, wanted: Iterable[ResourceRef], interpreters: Registry, *, now: str
) -> ClusterObservation:
    """Return free capacity and wanted workloads; `nodes` None: unknown, see `unlisted`. Raises MemberClusterError."""
    failed: set[Unlisted] = set()
    discovery, nodes, pods, quotas, objects = await asyncio.gather(
        member.discover(refresh=True),
        _answered(NODE, member.nodes(), "free capacity is not known", failed),
        _answered(POD, member.pods(), "free capacity is not known", failed),
        _answered(RESOURCE_QUOTA, member.list_objects(RESOURCE_QUOTA), "quotas are not counted", failed),
        _objects(member, tuple(wanted), failed),
    )
    requests = PodRequests()
    waiting = await _unscheduled(member, pods or (), objects.values(), failed)
    signs = pod_signs(objects.values(), pods, nodes, now) if pods is not None else {}
    counts = pod_counts(pods, owners(pods)) if pods is not None else None
    held = held_room(objects.values(), pods or (), waiting, requests)

    def workload_of(identity: Identity, live: LiveObject) -> Workload:
        try:
            interpreter = interpreters.of(*identity[:2])
            observed = workload(live, interpreter, waiting, now=now, held=held.get(identity), signs=signs.get(identity))
            return counts.with_counts(live, interpreter, observed) if counts is not None else observed
        except Exception:
            log.exception(
                "a workload could not be interpreted; nothing is concluded from how it is",
                extra=fault_fields(member.name, identity),
            )
            return Workload(gvk=live.gvk, identity=identity)

    room = None if nodes is None or pods is None else nodes_with_room(nodes, pods, requests)
    pending, pending_requests = pending_pods(pods or (), room or (), requests)
    return ClusterObservation(
        name=member.name,
        observed_at=now,
        apis=frozenset(discovery.served()),
        silent=discovery.stale,
        pending_requests=pending_requests,
        pending=pending,
        quotas=tuple(map(quota, sorted(quotas.objects, key=lambda live: live.identity))) if quotas is not None else (),
        nodes=room,
        workloads={identity: workload_of(identity, live) for identity, live in sorted(objects.items())},
        pods=counts.created() if counts is not None else None,
        unlisted=tuple(sorted(failed)),
    )


async def _answered(gvk: GVK, reading: Awaitable[_T], consequence: str, failed: set[Unlisted]) -> _T | None:
    """Return the result of a read; None on a fault, which is added to `failed` with its consequence."""
    try:
        return await reading
    except KindFault as error:
        failed.add(unlisted(Listed(gvk), error, f"{consequence}: {error.message}"))
        return None


async def _objects(
    member: MemberCluster, wanted: tuple[ResourceRef, ...], failed: set[Unlisted]
) -> Mapping[Identity, LiveObject]:
    names = {ref.identity for ref in wanted}
    places = by_key(((ref.gvk, ref.namespace), ref) for ref in wanted)
    lists = await asyncio.gather(*(_list(member, *place, refs, failed) for place, refs in sorted(places.items())))
    return {live.identity: live for listed in lists for live in listed if live.identity in names}


async def _list(
    member: MemberCluster, gvk: GVK, namespace: str, wanted: Iterable[ResourceRef], failed: set[Unlisted]
) -> tuple[LiveObject, ...]:
    """Return the objects of a kind; if listing is forbidden, read the wanted ones by name."""
    try:
        return (await member.list_objects(gvk, namespace=namespace)).objects
    except KindNotServed:
        return ()
    except Forbidden:
        objects = await asyncio.gather(*(_get(member, ref) for ref in wanted))
        return tuple(live for live in objects if live is not None)
    except KindFault as error:
        why = f"how what is there of it runs is not known: {error.message}"
        failed.add(unlisted(Listed(gvk, namespace), error, why))
        return ()


async def _get(member: MemberCluster, ref: ResourceRef) -> LiveObject | None:
    try:
        return await member.get(ref.gvk, ref.namespace, ref.name)
    except (ObjectNotFound, KindFault):
        return None


async def _unscheduled(
    member: MemberCluster, pods: tuple[Pod, ...], objects: Iterable[LiveObject], failed: set[Unlisted]
) -> Unscheduled:
    """Unschedulable pods by controller; ReplicaSets are read only where a wanted Deployment may own such pods."""
    waiting = Unscheduled(by_owner=unscheduled(pods))
    deployed = {live.identity.namespace for live in objects if live.identity.kind == "Deployment"}
    namespaces = [namespace for namespace in waiting.replica_set_namespaces if namespace in deployed]
    consequence = "what of a Deployment is unschedulable is not counted"
    listings = await asyncio.gather(
        *(
            _answered(REPLICA_SET, member.list_metadata(REPLICA_SET, namespace=name), consequence, failed)
            for name in namespaces
        )
    )
    replica_sets = [live for listing in listings if listing is not None for live in listing.objects]
    return replace(
        waiting, newest_replica_set=newest_replica_sets(replica_sets), replica_sets=replica_sets_by_owner(replica_sets)
    )
