"""The free capacity of the fleet during one round: placed replicas are subtracted at once, so nothing is booked twice.

Source: design#booked-once; Karmada places two workloads of the same second on the same capacity unless a feature gate
is on. A node that is full for a shape stays full, and the pods of a shape fill its nodes in their order. Amounts are
kept by resource, one list over all nodes, so that changes are counted column by column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct, field

from reconciler.api.clusters import ClusterNode, ClusterObservation
from reconciler.api.demand import PodShape
from reconciler.api.fleet import Fleet
from reconciler.api.policies import PropagationPolicy
from reconciler.placement.capacity.estimate import admits, fit, fit_of_quota, free_room
from reconciler.placement.values import PlacementContext


class _ShapeRoom(Struct):
    """Room for one shape. It holds the shape, so that the shape's id stays its own."""

    shape: PodShape
    columns: list[tuple[list[int], int]]
    """The free amounts over all nodes and the amount that a pod takes of them, for each requested resource."""
    log_length: int
    """The length of the log that the counts include."""
    counts: dict[int, int] = field(default_factory=dict)
    """Pods that fit on each node that admits the shape, once asked."""
    totals: dict[str, int] = field(default_factory=dict)
    """Their sums by cluster; 0 for one that does not answer, none where nodes are not known."""
    unfilled: dict[str, list[int]] = field(default_factory=dict)
    """By cluster, the nodes that may still have capacity; the first one is at the end."""


class NodeRoom:
    """Free amounts of every node, less placed pods, read on first use. Equal shapes must be one object."""

    def __init__(self, observations: Mapping[str, ClusterObservation]) -> None:
        self._observations = observations
        self._free: dict[str, list[int]] = {"pods": []}
        self._nodes: list[ClusterNode] = []
        self._cluster_of: list[str] = []
        self._ranges: dict[str, range] = {}
        self._admitting: dict[tuple[object, ...], list[int]] = {}
        self._rooms: dict[int, _ShapeRoom] = {}
        self._log: list[int] = []
        """The nodes on which something was put, in order."""

    def totals(self, shape: PodShape, clusters: Iterable[str]) -> Mapping[str, int]:
        """Return the pods of the shape that fit, at least for these clusters, where nodes are known."""
        room = self._room_for(shape)
        for cluster in clusters:
            observation = self._observations.get(cluster) if cluster not in room.totals else None
            if observation is not None and not observation.reachable:
                room.totals[cluster] = 0
            elif observation is not None and observation.nodes is not None:
                nodes = self.admitting(cluster, shape)
                room.counts.update(zip(nodes, _fits(room, nodes), strict=True))
                room.totals[cluster] = sum(map(room.counts.__getitem__, nodes))
        if room.log_length < len(self._log):
            counts, totals, cluster_of = room.counts, room.totals, self._cluster_of
            nodes = [index for index in {*self._log[room.log_length :]} if index in counts]
            room.log_length = len(self._log)
            for index, count in zip(nodes, _fits(room, nodes), strict=True):
                totals[cluster_of[index]] += count - counts[index]
                counts[index] = count
        return room.totals

    def put(self, cluster: str, shape: PodShape, pods: int) -> int:
        """Put pods on the first nodes that can take them; return the number left over."""
        room = self._rooms.get(id(shape)) or self._room_for(shape)
        nodes = room.unfilled.get(cluster)
        if nodes is None:
            nodes = room.unfilled[cluster] = [*reversed(self.admitting(cluster, shape))]
        columns = room.columns
        while pods and nodes:
            index = nodes[-1]
            here = pods
            for free, amount in columns:
                # Nearly always all of them fit, and a product is found sooner than a quotient.
                if free[index] < here * amount:
                    here = free[index] // amount
            if here < pods:
                nodes.pop()
            if here:
                pods -= here
                for free, amount in columns:
                    free[index] -= here * amount
                self._log.append(index)
        return pods

    def admitting(self, cluster: str, shape: PodShape) -> Sequence[int]:
        """Return the nodes of a cluster that admit the shape, by name."""
        key = (cluster, shape.node_selector, shape.node_terms, shape.tolerations)
        nodes = self._admitting.get(key)
        if nodes is None:
            nodes = [index for index in self._range_of(cluster) if not admits(self._nodes[index], shape)]
            self._admitting[key] = nodes
        return nodes

    def on(self, index: int) -> dict[str, int]:
        """Return the free amounts of a node."""
        return {name: amounts[index] for name, amounts in self._free.items()}

    def column(self, resource: str) -> list[int]:
        """Return free amounts of a resource, over all nodes."""
        return self._free.setdefault(resource, [0] * len(self._nodes))

    def _room_for(self, shape: PodShape) -> _ShapeRoom:
        room = self._rooms.get(id(shape))
        if room is None:
            columns = [(self.column(resource), amount) for resource, amount in shape.requests if amount > 0]
            columns.append((self._free["pods"], 1))
            room = self._rooms[id(shape)] = _ShapeRoom(shape, columns, len(self._log))
        return room

    def _range_of(self, cluster: str) -> range:
        indices = self._ranges.get(cluster)
        if indices is None:
            observation = self._observations.get(cluster)
            nodes = sorted(observation.nodes or () if observation is not None else (), key=lambda node: node.name)
            free = [free_room(node) for node in nodes]
            for name in sorted({name for room in free for name in room}):
                self.column(name)
            for name, amounts in self._free.items():
                # An overdrawn node has no capacity.
                amounts += [max(0, room.get(name, 0)) for room in free]
            indices = self._ranges[cluster] = range(len(self._nodes), len(self._nodes) + len(nodes))
            self._nodes += nodes
            self._cluster_of += [cluster] * len(nodes)
        return indices


def _fits(room: _ShapeRoom, nodes: Sequence[int]) -> Iterable[int]:
    columns = [[free[index] // amount for index in nodes] for free, amount in room.columns]
    return map(min, zip(*columns, strict=True))


def wants_capacity(fleet: Fleet) -> bool:
    """Return whether any policy of a store needs free capacity: nodes and pods are the dearest part of a read."""
    return any(map(policy_wants_capacity, fleet.propagation))


def policy_wants_capacity(policy: PropagationPolicy) -> bool:
    """Return whether the policy divides by free capacity, or places a gang, or can fail over."""
    scheduling = policy.placement.scheduling
    return scheduling.division.needs_capacity or scheduling.gang or policy.application_failover is not None


RoomOf = Callable[[Sequence[str]], Sequence[int | None]]
"""Replicas that each of the named clusters could take in addition; None where that is not known."""

_COUNTED = {
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("batch", "Job"): "jobs.batch",
    ("batch", "CronJob"): "cronjobs.batch",
}


class ClusterRoom:
    """Free capacity of one cluster: of its nodes, less waiting pods, within its quotas."""

    def __init__(self, name: str, observation: ClusterObservation, nodes: NodeRoom) -> None:
        self._name = name
        self._observation = observation
        self._nodes = nodes
        self.waiting = {name: amount for name, amount in observation.pending_requests.items() if amount > 0}
        """Requests of pods without a node."""
        self._taken: dict[str, dict[str, int]] = {}
        self._objects: dict[tuple[str, tuple[str, str]], int] = {}

    @property
    def is_known(self) -> bool:
        """Return whether the cluster's nodes could be read."""
        return self._observation.nodes is not None

    def take(self, reservations: Iterable[tuple[PodShape, int, str]]) -> None:
        """Put pods of shapes and namespaces on nodes; those that find none wait."""
        name, put = self._name, self._nodes.put
        limited = {quota.namespace for quota in self._observation.quotas}
        for shape, pods, namespace in reservations:
            if namespace in limited:
                used = self._taken.setdefault(namespace, {"pods": 0})
                used["pods"] += pods
                for resource, amount in shape.requests:
                    used[resource] = used.get(resource, 0) + pods * amount
            left = put(name, shape, pods)
            if left:
                for resource, amount in (("pods", 1), *shape.requests):
                    if amount > 0:
                        self.waiting[resource] = self.waiting.get(resource, 0) + left * amount

    def take_object(self, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created, for quotas that count objects."""
        key = (namespace, group_kind)
        self._objects[key] = self._objects.get(key, 0) + 1

    def admits_object(self, namespace: str, group_kind: tuple[str, str]) -> bool:
        """Return whether the namespace may have one more object of the kind: `count/deployments.apps` and the like."""
        created, key = self._objects.get((namespace, group_kind), 0), f"count/{_COUNTED.get(group_kind, '')}"
        return all(
            key not in quota.hard or quota.hard[key] - quota.used.get(key, 0) - created >= 1
            for quota in self._observation.quotas
            if quota.namespace == namespace
        )

    def limited(self, pods: int | None, shape: PodShape, namespace: str) -> int | None:
        """Return the number of pods on nodes, limited by waiting pods and quotas."""
        if not pods:
            return pods
        if self.waiting:
            nodes = self._nodes.admitting(self._name, shape)
            whole = {}
            for name in ("pods", *(name for name, amount in shape.requests if amount > 0)):
                amounts = self._nodes.column(name)
                whole[name] = sum([amounts[index] for index in nodes]) - self.waiting.get(name, 0)
            pods = min(pods, fit(whole, shape.requests))
        for quota in self._observation.quotas:
            if quota.namespace == namespace:
                pods = min(pods, fit_of_quota(quota, self._taken.get(namespace, {}), shape.requests))
        return pods

    def nodes_for(self, shape: PodShape) -> list[tuple[int, dict[str, int]]]:
        """Return index and a copy of the free capacity of every node that admits the shape, by node name."""
        return [(index, self._nodes.on(index)) for index in self._nodes.admitting(self._name, shape)]

    def admits_set(self, pods: Iterable[tuple[PodShape, int]], namespace: str) -> bool:
        """Return whether quotas of the namespace let all these pods in together."""
        quotas = [quota for quota in self._observation.quotas if quota.namespace == namespace]
        if not quotas:
            return True
        total = {"pods": 0}
        for shape, count in pods:
            total["pods"] += count
            for resource, amount in shape.requests:
                total[resource] = total.get(resource, 0) + count * amount
        one = tuple(entry for entry in total.items() if entry[0] != "pods")
        used = self._taken.get(namespace, {})
        # The set as one pod: its requests are the sum, and of `pods` it takes all but one beforehand.
        beforehand = {**used, "pods": used.get("pods", 0) + total["pods"] - 1}
        return all(fit_of_quota(quota, beforehand, one) >= 1 for quota in quotas)


class FleetRoom:
    """Free capacity of every observed cluster. Reservations are subtracted on reading: unread clusters cost nothing."""

    def __init__(self, observations: Mapping[str, ClusterObservation]) -> None:
        self._observations = observations
        self._nodes = nodes = NodeRoom(observations)
        self._free_room = cache(lambda cluster: ClusterRoom(cluster, observations[cluster], nodes))
        self._shapes: dict[PodShape, PodShape] = {}
        self._queues: dict[str, list[tuple[PodShape, int, str]]] = {}
        self._limited = {name for name, one in observations.items() if one.quotas or any(one.pending_requests.values())}
        """Clusters with more limits than the capacity of single nodes."""
        self.counts_objects = any(observation.quotas for observation in observations.values())
        """True if a quota could refuse an object."""
        self.questions = 0
        """Number of questions for the capacity of clusters."""
        self.unknown: set[str] = set()
        """Clusters whose capacity was asked for and is unknown."""

    def of(self, cluster: str) -> ClusterRoom | None:
        """Return the present capacity of a cluster; None without an observation."""
        self.questions += 1
        if cluster in self._queues:
            self._work_off(cluster)
        room = self._free_room(cluster) if cluster in self._observations else None
        if room is None or not room.is_known:
            self.unknown.add(cluster)
        return room

    def shared_shape(self, shape: PodShape) -> PodShape:
        """Return the one object for all equal shapes."""
        return self._shapes.setdefault(shape, shape)

    def asker(self, shape: PodShape, namespace: str, group_kind: tuple[str, str], there: Collection[str]) -> RoomOf:
        """Return a function for how many more pods fit in clusters. `there`: those that have the object already."""
        shape = self.shared_shape(shape)

        def replicas(clusters: Sequence[str]) -> Sequence[int | None]:
            self.questions += bool(clusters)
            for cluster in clusters:
                if cluster in self._queues:
                    self._work_off(cluster)
            free = list(map(self._nodes.totals(shape, clusters).get, clusters))
            if None in free:
                self.unknown.update(name for name, pods in zip(clusters, free, strict=True) if pods is None)
            if not self._limited.isdisjoint(clusters):
                for index, cluster in enumerate(clusters):
                    if cluster in self._limited:
                        room = self._free_room(cluster)
                        admitted = cluster in there or room.admits_object(namespace, group_kind)
                        free[index] = room.limited(free[index], shape, namespace) if admitted else 0
            return free

        return replicas

    def take_object(self, cluster: str, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created there."""
        if cluster in self._observations:
            self._free_room(cluster).take_object(namespace, group_kind)

    def take(self, targets: Iterable[tuple[str, int | None]], shape: PodShape, namespace: str) -> None:
        """Note that so many pods of a shape will run in each of these clusters."""
        shape = self.shared_shape(shape)
        for cluster, pods in targets:
            if pods and pods > 0 and cluster in self._observations:
                self._queues.setdefault(cluster, []).append((shape, pods, namespace))

    def _work_off(self, cluster: str) -> None:
        room = self._free_room(cluster)
        room.take(self._queues.pop(cluster))
        if room.waiting or self._observations[cluster].quotas:
            self._limited.add(cluster)


Observed = Mapping[str, ClusterObservation]
"""Clusters with observed workloads or pods."""


def pending_writes(situation: PlacementContext, observed: Observed) -> list[tuple[str, int]]:
    """Return by cluster the pods of earlier assignments that its observation, perhaps older, does not show yet."""
    pending = []
    for cluster, replicas in situation.had.items() if observed else ():
        observation = observed.get(cluster)
        pods = _missing(situation, observation, cluster, replicas) if observation is not None else 0
        if pods > 0:
            pending.append((cluster, pods))
    return pending


def _missing(situation: PlacementContext, observation: ClusterObservation, cluster: str, replicas: int) -> int:
    item = situation.item
    workload = observation.workloads.get(item.identity)
    if workload is not None:
        if workload.assigned is None:
            return max(0, item.sent(cluster, replicas) - workload.replicas) + workload.missing
        # The mark of another assignment: it was seen before it was written last.
        return max(0, item.sent(cluster, replicas) - item.sent(cluster, workload.assigned)) + workload.missing
    if observation.pods is None or cluster not in situation.written:
        return 0
    pods = observation.pods.get(item.identity, 0)
    is_begun = pods > 0 and (item.is_autoscaled or bool(item.demand.components))
    return 0 if is_begun else item.sent(cluster, replicas) - pods
