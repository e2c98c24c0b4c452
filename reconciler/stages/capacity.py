"""The free room of the fleet during one round: what is placed is taken off at once, so nothing is booked twice.

What `estimate` says of an observation, kept up to date while the round places one workload after another, with a count
per node so that only nodes that changed are looked at again. Source: design: serial placement with reservation; Karmada
places two workloads of the same second on the same room unless a feature gate is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.demand import PodShape
from reconciler.model.observation import ClusterObservation
from reconciler.stages.estimate import admits, admits_object, fit, fit_of_quota, free_room


class _ShapeRoom:
    """Room for one shape, per node that admits it. `seen` is how much of the cluster's log it reflects."""

    __slots__ = ("counts", "seen", "total")

    def __init__(self, counts: dict[int, int], seen: int) -> None:
        self.counts = counts
        self.total = sum(counts.values())
        self.seen = seen


class ClusterRoom:
    """Free room of one cluster, and who has taken some of it in this round."""

    def __init__(self, observation: ClusterObservation) -> None:
        """Start from what was observed; nothing in the observation is changed."""
        self._observation = observation
        self._nodes = sorted(observation.nodes or (), key=lambda node: node.name)
        self._free = [free_room(node) for node in self._nodes]
        self._waiting = {name: amount for name, amount in observation.pending_requests.items() if amount > 0}
        self._taken: dict[str, dict[str, int]] = {}
        self._objects: dict[tuple[str, tuple[str, str]], int] = {}
        self._touched: list[int] = []
        self._rooms: dict[PodShape, _ShapeRoom] = {}
        self._queue: list[tuple[PodShape, int, str]] = []

    @property
    def is_known(self) -> bool:
        """Whether the cluster's nodes could be read."""
        return self._observation.nodes is not None

    @property
    def is_reachable(self) -> bool:
        """Whether the cluster answered."""
        return self._observation.reachable

    def take(self, shape: PodShape, pods: int, namespace: str) -> None:
        """Note that so many pods of a shape will run here. It is worked off when somebody asks."""
        if pods > 0:
            self._queue.append((shape, pods, namespace))

    def take_object(self, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created, for quotas that count objects."""
        key = (namespace, group_kind)
        self._objects[key] = self._objects.get(key, 0) + 1

    def admits_object(self, namespace: str, group_kind: tuple[str, str]) -> bool:
        """Whether quotas let one more object of the kind into the namespace."""
        quotas = self._observation.quotas
        return not quotas or admits_object(quotas, namespace, group_kind, self._objects.get((namespace, group_kind), 0))

    def replicas(self, shape: PodShape, namespace: str) -> int:
        """Pods of the shape that fit in addition to all that runs, waits or has been placed in this round."""
        self._work_off()
        room = self._room_for(shape)
        pods = room.total
        if self._waiting and pods:
            pods = min(pods, self._as_a_whole(shape, room))
        return self._within_quotas(shape, namespace, pods)

    def nodes_for(self, shape: PodShape) -> list[tuple[int, dict[str, int]]]:
        """Index and a copy of the free room of every node that admits the shape, by node name."""
        self._work_off()
        return [(index, dict(self._free[index])) for index in self._room_for(shape).counts]

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

    def _within_quotas(self, shape: PodShape, namespace: str, pods: int) -> int:
        for quota in self._observation.quotas:
            if quota.namespace == namespace:
                pods = min(pods, fit_of_quota(quota, self._taken.get(namespace, {}), shape.requests))
        return pods

    def _as_a_whole(self, shape: PodShape, room: _ShapeRoom) -> int:
        whole = {
            name: sum(max(0, self._free[index].get(name, 0)) for index in room.counts) - self._waiting.get(name, 0)
            for name in ("pods", *(name for name, amount in shape.requests if amount > 0))
        }
        return fit(whole, shape.requests)

    def _room_for(self, shape: PodShape) -> _ShapeRoom:
        room = self._rooms.get(shape)
        if room is None:
            counts = {
                index: fit(self._free[index], shape.requests)
                for index, node in enumerate(self._nodes)
                if not admits(node, shape)
            }
            room = self._rooms[shape] = _ShapeRoom(counts, len(self._touched))
        elif room.seen < len(self._touched):
            for index in set(self._touched[room.seen :]):
                if index in room.counts:
                    count = fit(self._free[index], shape.requests)
                    room.total += count - room.counts[index]
                    room.counts[index] = count
            room.seen = len(self._touched)
        return room

    def _work_off(self) -> None:
        queue, self._queue = self._queue, []
        for shape, pods, namespace in queue:
            self._count_for_quotas(shape, pods, namespace)
            left = pods
            for index, count in self._room_for(shape).counts.items():
                if left and count:
                    here = min(left, count)
                    left -= here
                    self._put(index, shape, here)
            if left:
                self._let_wait(shape, left)

    def _put(self, index: int, shape: PodShape, pods: int) -> None:
        free = self._free[index]
        free["pods"] -= pods
        for resource, amount in shape.requests:
            if amount > 0:
                free[resource] -= pods * amount
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

    def of(self, cluster: str) -> ClusterRoom | None:
        """The room of a cluster; None when nothing was observed of it."""
        room = self._rooms.get(cluster)
        if room is None and cluster in self._observations:
            room = self._rooms[cluster] = ClusterRoom(self._observations[cluster])
        return room

    def replicas(self, cluster: str, shape: PodShape, namespace: str) -> int | None:
        """Pods of the shape that still fit there; None when that is not known."""
        room = self.of(cluster)
        if room is None:
            return None
        if not room.is_reachable:
            return 0
        return room.replicas(shape, namespace) if room.is_known else None

    def take_object(self, cluster: str, namespace: str, group_kind: tuple[str, str]) -> None:
        """Note that an object of the kind will be created there."""
        room = self.of(cluster)
        if room is not None:
            room.take_object(namespace, group_kind)

    def admits_object(self, cluster: str, namespace: str, group_kind: tuple[str, str]) -> bool:
        """Whether quotas of the cluster let one more object of the kind into the namespace."""
        room = self.of(cluster)
        return room is None or room.admits_object(namespace, group_kind)

    def take(self, cluster: str, shape: PodShape, pods: int, namespace: str) -> None:
        """Note that so many pods of a shape will run there."""
        room = self.of(cluster)
        if room is not None and pods > 0:
            room.take(shape, pods, namespace)
