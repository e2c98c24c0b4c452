"""The free room of the fleet during one round: what is placed is taken off at once, so nothing is booked twice.

What `estimate` says of an observation, kept up to date while the round places one workload after another, with a count
per node so that only nodes that changed are looked at again. Source: design: serial placement with reservation; Karmada
places two workloads of the same second on the same room unless a feature gate is on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from reconciler.model.demand import PodShape
from reconciler.model.observation import ClusterObservation, Node
from reconciler.stages.estimate import admits, admits_object, fit, fit_of_quota, free_room


@dataclass(slots=True)
class _ShapeRoom:
    """Room for one shape, per node that admits it. `seen` is how much of the cluster's log it reflects.

    It holds the shape, so that the shape's id stays its own.
    """

    shape: PodShape
    asked: list[tuple[list[int], int]]
    """The free amounts over all nodes and the amount that a pod takes of them, for each requested resource."""
    counts: dict[int, int]
    total: int
    seen: int


class ClusterRoom:
    """Free room of one cluster, and who has taken some of it in this round.

    Shapes are told apart by identity: `FleetRoom` hands out one object for equal shapes. Free amounts are kept by
    resource, one list over the nodes each.
    """

    def __init__(self, observation: ClusterObservation) -> None:
        """Start from what was observed; nothing in the observation is changed."""
        self._observation = observation
        self.is_open = observation.reachable and observation.nodes is not None
        self._waiting = {name: amount for name, amount in observation.pending_requests.items() if amount > 0}
        self._taken: dict[str, dict[str, int]] = {}
        self._objects: dict[tuple[str, tuple[str, str]], int] = {}
        self._touched: list[int] = []
        self._rooms: dict[int, _ShapeRoom] = {}
        self._admitted: dict[tuple[object, ...], list[int]] = {}
        self._queue: list[tuple[PodShape, int, str]] = []

    @cached_property
    def _nodes(self) -> list[Node]:
        return sorted(self._observation.nodes or (), key=lambda node: node.name)

    @cached_property
    def _free(self) -> dict[str, list[int]]:
        """Free amounts of each resource, over the nodes. Where nobody asks for room, none is reckoned."""
        free = [free_room(node) for node in self._nodes]
        return {name: [room.get(name, 0) for room in free] for name in sorted({n for room in free for n in room})}

    @cached_property
    def _missing(self) -> list[int]:
        return [0] * len(self._nodes)

    @property
    def is_known(self) -> bool:
        """Whether the cluster's nodes could be read."""
        return self._observation.nodes is not None

    def take(self, shape: PodShape, pods: int, namespace: str) -> None:
        """Note that so many pods of a shape will run here. It is worked off when somebody asks."""
        if pods > 0:
            self._queue.append((shape, pods, namespace))

    def take_object(self, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created, for quotas that count objects."""
        if self._observation.quotas:
            key = (namespace, group_kind)
            self._objects[key] = self._objects.get(key, 0) + 1

    def admits_object(self, namespace: str, group_kind: tuple[str, str]) -> bool:
        """Whether quotas let one more object of the kind into the namespace."""
        quotas = self._observation.quotas
        return not quotas or admits_object(quotas, namespace, group_kind, self._objects.get((namespace, group_kind), 0))

    def replicas(self, shape: PodShape, namespace: str) -> int | None:
        """Pods of the shape that fit in addition to all that runs, waits or has been placed in this round.

        0 when the cluster does not answer, None when its nodes are not known.
        """
        if not self.is_open:
            return 0 if not self._observation.reachable else None
        if self._queue:
            self._work_off()
        room = self._rooms.get(id(shape))
        if room is None or room.seen < len(self._touched):
            room = self._room_for(shape)
        pods = room.total
        if self._waiting and pods:
            pods = min(pods, self._as_a_whole(shape, room))
        for quota in self._observation.quotas:
            if quota.namespace == namespace:
                pods = min(pods, fit_of_quota(quota, self._taken.get(namespace, {}), shape.requests))
        return pods

    def nodes_for(self, shape: PodShape) -> list[tuple[int, dict[str, int]]]:
        """Index and a copy of the free room of every node that admits the shape, by node name."""
        self._work_off()
        return [
            (index, {name: amounts[index] for name, amounts in self._free.items()})
            for index in self._room_for(shape).counts
        ]

    def admits_set(self, pods: Iterable[tuple[PodShape, int]], namespace: str) -> bool:
        """Whether quotas of the namespace let all these pods in together."""
        quotas = [quota for quota in self._observation.quotas if quota.namespace == namespace]
        if not quotas:
            return True
        self._work_off()
        asked = {"pods": 0}
        for shape, count in pods:
            asked["pods"] += count
            for resource, amount in shape.requests:
                asked[resource] = asked.get(resource, 0) + count * amount
        one = tuple(entry for entry in asked.items() if entry[0] != "pods")
        taken = self._taken.get(namespace, {})
        # The set as one pod: its requests are the sum, and of `pods` it takes all but one beforehand.
        beforehand = {**taken, "pods": taken.get("pods", 0) + asked["pods"] - 1}
        return all(fit_of_quota(quota, beforehand, one) >= 1 for quota in quotas)

    def waiting(self) -> Mapping[str, int]:
        """Requests of pods without a node."""
        self._work_off()
        return self._waiting

    def _as_a_whole(self, shape: PodShape, room: _ShapeRoom) -> int:
        whole = {
            name: sum(max(0, self._column(name)[index]) for index in room.counts) - self._waiting.get(name, 0)
            for name in ("pods", *(name for name, amount in shape.requests if amount > 0))
        }
        return fit(whole, shape.requests)

    def _column(self, resource: str) -> list[int]:
        return self._free.get(resource, self._missing)

    def _room_for(self, shape: PodShape) -> _ShapeRoom:
        room = self._rooms.get(id(shape))
        if room is None:
            asked = [(self._column(resource), amount) for resource, amount in shape.requests if amount > 0]
            asked.append((self._column("pods"), 1))
            nodes = self._nodes_that_admit(shape)
            fits = [[free[index] // amount for index in nodes] for free, amount in asked]
            counts = {index: max(0, min(column)) for index, column in zip(nodes, zip(*fits, strict=True), strict=True)}
            room = self._rooms[id(shape)] = _ShapeRoom(shape, asked, counts, sum(counts.values()), len(self._touched))
        elif room.seen < len(self._touched):
            for index in set(self._touched[room.seen :]):
                if index in room.counts:
                    count = max(0, min([free[index] // amount for free, amount in room.asked]))
                    room.total += count - room.counts[index]
                    room.counts[index] = count
            room.seen = len(self._touched)
        return room

    def _nodes_that_admit(self, shape: PodShape) -> list[int]:
        key = (shape.node_selector, shape.node_terms, shape.tolerations)
        nodes = self._admitted.get(key)
        if nodes is None:
            nodes = [index for index, node in enumerate(self._nodes) if not admits(node, shape)]
            self._admitted[key] = nodes
        return nodes

    def _work_off(self) -> None:
        queue, self._queue = self._queue, []
        for shape, pods, namespace in queue:
            self._count_for_quotas(shape, pods, namespace)
            left = pods
            for index, count in self._room_for(shape).counts.items():
                if count:
                    here = min(left, count)
                    self._put(index, shape, here)
                    left -= here
                    if not left:
                        break
            if left:
                self._let_wait(shape, left)

    def _put(self, index: int, shape: PodShape, pods: int) -> None:
        self._free["pods"][index] -= pods
        for resource, amount in shape.requests:
            if amount > 0:
                self._free[resource][index] -= pods * amount
        self._touched.append(index)

    def _let_wait(self, shape: PodShape, pods: int) -> None:
        self._waiting["pods"] = self._waiting.get("pods", 0) + pods
        for resource, amount in shape.requests:
            if amount > 0:
                self._waiting[resource] = self._waiting.get(resource, 0) + pods * amount

    def _count_for_quotas(self, shape: PodShape, pods: int, namespace: str) -> None:
        if any(quota.namespace == namespace for quota in self._observation.quotas):
            taken = self._taken.setdefault(namespace, {"pods": 0})
            taken["pods"] += pods
            for resource, amount in shape.requests:
                taken[resource] = taken.get(resource, 0) + pods * amount


class FleetRoom:
    """Free room of every observed cluster."""

    def __init__(self, observations: Mapping[str, ClusterObservation]) -> None:
        """Nothing is computed before somebody asks."""
        self._observations = observations
        self._rooms: dict[str, ClusterRoom] = {}
        self._shapes: dict[PodShape, PodShape] = {}
        self.counts_objects = any(observation.quotas for observation in observations.values())
        """Whether any quota could refuse an object."""

    def of(self, cluster: str) -> ClusterRoom | None:
        """The room of a cluster; None when nothing was observed of it."""
        room = self._rooms.get(cluster)
        if room is None and cluster in self._observations:
            room = self._rooms[cluster] = ClusterRoom(self._observations[cluster])
        return room

    def known(self, shape: PodShape) -> PodShape:
        """The one object that stands for all equal shapes."""
        return self._shapes.setdefault(shape, shape)

    def asker(
        self, shape: PodShape, namespace: str, group_kind: tuple[str, str], there: Collection[str]
    ) -> Callable[[str], int | None]:
        """Tells for a cluster how many pods of the shape still fit there; None when that is not known.

        `there`: clusters that have the object already; elsewhere quotas must let a new object in.
        """
        shape, rooms, of = self.known(shape), self._rooms, self.of

        def replicas(cluster: str) -> int | None:
            room = rooms.get(cluster) or of(cluster)
            if room is None:
                return None
            if cluster not in there and not room.admits_object(namespace, group_kind):
                return 0
            return room.replicas(shape, namespace)

        return replicas

    def take_object(self, cluster: str, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created there."""
        room = self.of(cluster)
        if room is not None:
            room.take_object(namespace, group_kind)

    def take(self, cluster: str, shape: PodShape, pods: int, namespace: str) -> None:
        """Note that so many pods of a shape will run there."""
        room = self.of(cluster)
        if room is not None and pods > 0:
            room.take(self.known(shape), pods, namespace)
