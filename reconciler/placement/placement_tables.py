"""The memory of placement between rounds, so that a round places only what may have changed.

It never changes a result: an entry is dropped, or computed again, when any of its inputs changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, is_
from typing import Final, NamedTuple

from reconciler.api.binding import Binding, Reason
from reconciler.api.clusters import Cluster, ClusterObservation
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.incremental import Table
from reconciler.placement.candidates import AffinityGroup, CandidateFinder, groups_of, tier_of
from reconciler.placement.capacity import Observed, pending_writes
from reconciler.placement.spread import spread_applies
from reconciler.placement.values import OPEN, Assignment, Outcomes, PlacementContext, PlacementItem

_MAX_STALE_POLICIES: Final = 1_000

_READINGS: Final = attrgetter("reachable", "nodes", "workloads", "pods", "quotas", "pending_requests", "pending")
"""All that the capacity of a cluster comes from."""

UNDECIDED: Final = Assignment(targets=())
"""Placeholder for the assignment of objects placed by capacity, until their turn."""


class Placed(NamedTuple):
    """One resource with its placement."""

    situation: PlacementContext
    assignment: Assignment


class ClusterIndex:
    """Results that depend on clusters, reachability and served kinds. Keys are ids of policies, which are kept here."""

    def __init__(self, clusters: Mapping[str, Cluster], observed: Mapping[str, ClusterObservation]) -> None:
        self.clusters = {name: clusters[name] for name in sorted(clusters)}
        self._seen = essentials(observed)
        self.policies: dict[int, PropagationPolicy] = {}
        """Those that are known, former versions included."""
        self._outcomes: dict[int, tuple[Assignment, Mapping[str, Reason]]] = {}
        self.finder = CandidateFinder(self.clusters, observed)
        self.groups: dict[tuple[int, bool], tuple[AffinityGroup, ...]] = {}
        self.decided: dict[tuple[object, ...], Assignment] = {}

    def is_of(self, clusters: Mapping[str, Cluster], observed: Mapping[str, ClusterObservation]) -> bool:
        """Return whether it was made from these clusters."""
        return self.clusters == clusters and self._seen == essentials(observed)

    def id_of(self, policy: PropagationPolicy) -> int:
        """Return the id of a policy, its own as long as this lives."""
        self.policies[id(policy)] = policy
        return id(policy)

    def outcomes(self, assignment: Assignment) -> Mapping[str, Reason]:
        """Return the reason of every cluster, made from the outcome. Thousands of resources share a assignment."""
        shared = self._outcomes.get(id(assignment))
        if shared is None:
            outcomes = Outcomes(assignment.cluster_reasons, assignment.targets)
            shared = self._outcomes[id(assignment)] = (assignment, outcomes)
        return shared[1]


class PlacementTables:
    """The placements of the last call. Those that depend on capacity are made again when any of it changes."""

    def __init__(self) -> None:
        self._index: ClusterIndex | None = None
        self._size_at_first = 0
        self.observed: Mapping[str, ClusterObservation] | None = None
        self.priorities: Mapping[str, int] = {}
        self.showing: Observed = {}
        self.placed: dict[Identity, Placed] = {}
        # Dictionaries in place of sets keep the sorted order.
        self.by_room: dict[Identity, None] = {}
        self.consumers: dict[Identity, None] | None = None
        """Those apart from `by_room` that take room of others; None: to be found."""
        self.bindings = Table[Identity, Binding]()
        self.problems = Table[Identity, tuple[Problem, ...]]()

    def follow(self, observed: Mapping[str, ClusterObservation], priorities: Mapping[str, int]) -> None:
        """Take the observations; if any capacity or the order changed, compute again which items take some."""
        before = self.observed
        is_same = before is observed or (
            before is not None
            and before.keys() == observed.keys()
            and all(all(map(is_, _READINGS(old), _READINGS(observed[name]))) for name, old in before.items())
        )
        if not is_same or priorities != self.priorities:
            self.consumers = None
        self.observed, self.priorities = observed, priorities
        self.showing = {
            name: one for name, one in observed.items() if one.reachable and (one.workloads or one.pods is not None)
        }

    def index_of(self, clusters: Mapping[str, Cluster], observed: Mapping[str, ClusterObservation]) -> ClusterIndex:
        """Return the index of the clusters: the last one while it holds and is not full of old policies."""
        index = self._index
        if index is not None and not self._size_at_first:
            self._size_at_first = len(index.policies)
        is_full = index is not None and len(index.policies) > 2 * self._size_at_first + _MAX_STALE_POLICIES
        if index is None or is_full or not index.is_of(clusters, observed):
            index = self._index = ClusterIndex(clusters, observed)
            self._size_at_first = 0
        return index

    def items(self, identities: Iterable[Identity]) -> Iterator[PlacementItem]:
        """Yield the last inputs of these placements."""
        return (self.placed[identity].situation.item for identity in identities)

    def forget(self, identity: Identity) -> bool:
        """Leave a resource out from now on; return whether items that depend on capacity must be placed again."""
        touched = self.touches_room(identity)
        self.placed.pop(identity, None)
        self.by_room.pop(identity, None)
        self.set_consumer(identity, takes=False)
        return touched

    def touches_room(self, identity: Identity) -> bool:
        """Return whether it depends on free capacity, or takes some."""
        return identity in self.by_room or (self.consumers is not None and identity in self.consumers)

    def set_consumer(self, identity: Identity, *, takes: bool) -> None:
        """Note whether it takes capacity."""
        if self.consumers is not None and takes:
            self.consumers[identity] = None
        elif self.consumers is not None:
            self.consumers.pop(identity, None)


def depends_on_capacity(situation: PlacementContext) -> bool:
    """Return whether free capacity decides its replicas, or the clusters that a spread constraint selects."""
    placement = situation.item.policy.placement
    scheduling = placement.scheduling
    if not placement.spread and not scheduling.gang and not scheduling.division.needs_capacity:
        return False  # as most are
    return situation.needs_room or spread_applies(placement)


def depends_on_room(situation: PlacementContext, assignment: Assignment) -> bool:
    """Return whether unknown capacity could matter: neither all candidates nor only clusters in use were taken."""
    if assignment.shortfalls or assignment.unplaced:
        return True
    targets = {target.cluster for target in assignment.targets}
    open_to = sum(reason.rule in OPEN for reason in assignment.cluster_reasons.values())
    return len(targets) < open_to and not targets <= situation.had.keys()


def takes_capacity(placed: Placed, observed: Observed) -> bool:
    """Return whether it takes capacity, or an object count of a quota, beyond its previous or unfilled share."""
    had = placed.situation.had
    for cluster, replicas in placed.assignment.targets:
        if cluster not in had or (replicas or 0) > had[cluster]:
            return True
    return bool(pending_writes(placed.situation, observed))


def takes_same_capacity(one: Placed, other: Placed) -> bool:
    """Return whether two placements of a resource take the same capacity."""
    return (
        one.assignment.targets == other.assignment.targets
        and one.situation.had == other.situation.had
        and set(one.situation.written) == set(other.situation.written)
        and one.situation.item.demand == other.situation.item.demand
        and one.situation.item.gvk == other.situation.item.gvk
        and one.situation.item.overrides is other.situation.item.overrides
    )


def essentials(observed: Mapping[str, ClusterObservation]) -> dict[str, object]:
    """Return the inputs of candidates."""
    return {name: (one.reachable, one.apis, one.silent) for name, one in observed.items()}


def concerned_by(clusters: Iterable[Cluster], policies: Mapping[Identity, PropagationPolicy]) -> Iterator[Identity]:
    """Yield those whose policy reaches one of the clusters; the others are unaffected."""
    reaches: dict[int, bool] = {}
    for identity, policy in policies.items():
        is_reached = reaches.get(id(policy))
        if is_reached is None:
            groups = groups_of(policy, by_capacity=True)
            is_reached = any(tier_of(cluster, group)[0] is not None for cluster in clusters for group in groups)
            reaches[id(policy)] = is_reached
        if is_reached:
            yield identity
