"""The free capacity of all nodes of the fleet during one round, and the number of pods of a shape that still fit.

Capacity is only ever taken: a node that is full for a shape stays full, and the pods of a shape fill its nodes in their
order. Amounts are kept by resource, one list over all nodes, so that changes are counted column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from reconciler.api.clusters import ClusterNode, ClusterObservation
from reconciler.api.demand import PodShape
from reconciler.api.fleet import Fleet
from reconciler.api.policies import PropagationPolicy
from reconciler.placement.capacity.estimate import admits, free_room


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
