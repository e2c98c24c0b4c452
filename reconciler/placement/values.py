"""Inputs and results of placement, and the situation of one resource during it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.clusters import Cluster, Observations
from reconciler.api.demand import Demand
from reconciler.api.fleet import FleetSettings
from reconciler.api.policies import Division, PropagationPolicy
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity
from reconciler.overrides import SentReplicas


class PlacementItem(Struct, frozen=True, kw_only=True):
    """A claimed template. `is_autoscaled`: others control its live replicas. `overrides`: what may set its replicas."""

    identity: Identity
    gvk: GVK
    policy: PropagationPolicy
    demand: Demand
    is_autoscaled: bool = False
    has_completions: bool = False
    """It is a Job with completions, which are divided once and for all."""
    overrides: SentReplicas | None = None

    def sent(self, cluster: str, assigned: int) -> int:
        """Return the replicas that are sent to a cluster with this assigned number."""
        return assigned if self.overrides is None else self.overrides.sent(cluster, assigned)


class PlacementRequest(Struct, frozen=True, kw_only=True):
    """All inputs of a placement. `fresh` ignores existing replicas (an explicit reschedule)."""

    items: tuple[PlacementItem, ...]
    clusters: Mapping[str, Cluster]
    observations: Observations = field(default_factory=Observations)
    settings: FleetSettings = field(default_factory=FleetSettings)
    now: str = ""
    fresh: bool = False
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[Identity, Collection[str]] = field(default_factory=dict)
    """Clusters with written copies of ours."""
    closed: Mapping[Identity, Mapping[str, str]] = field(default_factory=dict)
    """For templates under an active constraint, the clusters with a write block, with why."""


class PlacementResult(Struct, frozen=True, kw_only=True):
    """A binding for every item, and the problems."""

    bindings: Mapping[Identity, Binding]
    problems: tuple[Problem, ...] = ()


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
"""The empty value of most resources, shared by all of them."""

OPEN: Final = ("candidate", "already-there")
"""Rules of clusters that may hold the resource, before any is chosen."""


class PlacementContext(Struct, frozen=True, kw_only=True):
    """One resource during placement.

    `had`: previous replicas by cluster name. `caps`, `cap_reasons`: the most replicas that a tick allows, and why;
    `excluded`: clusters that it excludes, and why. `group_in_use`: of clusterAffinities.
    """

    item: PlacementItem
    had: Mapping[str, int] = _NOTHING
    caps: Mapping[str, int] = _NOTHING
    cap_reasons: Mapping[str, str] = _NOTHING
    excluded: Mapping[str, str] = _NOTHING
    group_in_use: str = ""
    fresh: bool = False
    partial: bool = False
    written: Collection[str] = ()
    """Clusters with a written copy."""

    @property
    def division(self) -> Division:
        """Return the policy's division of replicas."""
        return self.item.policy.placement.scheduling.division

    @property
    def replicas(self) -> int:
        """Return replicas that the template asks for; 0 when it has none."""
        return self.item.demand.replicas or 0

    @property
    def is_whole(self) -> bool:
        """Return whether all of it belongs on one cluster: a gang, or an indivisible workload under Divided."""
        demand, scheduling = self.item.demand, self.item.policy.placement.scheduling
        if not demand.replicas and not demand.components:
            return False
        if scheduling.gang:
            return True
        indivisible = not demand.is_divisible and (self.replicas > 1 or bool(demand.components))
        return indivisible and scheduling.division.needs_capacity

    @property
    def is_divided_by_capacity(self) -> bool:
        """Return whether free capacity decides about its replicas."""
        return bool(self.replicas) and self.division.needs_capacity

    @property
    def needs_room(self) -> bool:
        """Return whether free capacity decides the clusters of its replicas."""
        return self.is_whole or self.is_divided_by_capacity

    def reason(self, rule: str, text: str) -> Reason:
        """Return a reason of its placement, with the place of the policy's scheduling."""
        return Reason(rule=rule, text=text, source=self.item.policy.placement.scheduling.source)


class Shortfall(Struct, frozen=True, kw_only=True):
    """The reason of an incomplete placement: a stable code and a sentence without its subject."""

    code: str
    text: str


class Assignment(Struct, frozen=True, kw_only=True):
    """A placement without the name of its resource, so that equal cases can share it."""

    targets: tuple[TargetCluster, ...]
    unplaced: int = 0
    affinity_name: str = ""
    reasons: tuple[Reason, ...] = ()
    cluster_reasons: Mapping[str, Reason] = field(default_factory=dict)
    shortfalls: tuple[Shortfall, ...] = ()
    unknown_room: tuple[str, ...] = ()
    """As `Binding.unknown_room`."""


def targets_of(counts: Mapping[str, int]) -> tuple[TargetCluster, ...]:
    """Return counts as target clusters in name order."""
    return tuple(TargetCluster(cluster=name, replicas=counts[name]) for name in sorted(counts))


class LazyReasons(Mapping[str, Reason]):
    """The reasons of all clusters, each made when it is read: a fleet has one a policy and cluster; few are read."""

    __slots__ = ()

    _clusters: Collection[str]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)


class PolicyReasons(LazyReasons):
    """The reasons of all clusters for one policy, before any is chosen. `clusters`: rule and text, shared ones."""

    __slots__ = ("_clusters", "_source")

    def __init__(self, clusters: Mapping[str, tuple[str, str]], source: Source) -> None:
        self._clusters: Mapping[str, tuple[str, str]] = clusters
        self._source = source

    def __getitem__(self, cluster: str) -> Reason:
        rule, text = self._clusters[cluster]
        return Reason(rule=rule, text=text, source=self._source, cluster=cluster)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PolicyReasons):
            return self._source == other._source and self._clusters == other._clusters
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]  # A mapping has none either.


class Outcomes(LazyReasons):
    """The final reasons of all clusters: candidates may get nothing, others may keep theirs. `targets`: by name."""

    __slots__ = ("_clusters", "_targets")

    def __init__(self, clusters: Mapping[str, Reason], targets: Sequence[TargetCluster]) -> None:
        self._clusters: Mapping[str, Reason] = clusters
        self._targets = targets

    def __getitem__(self, cluster: str) -> Reason:
        place = bisect_left(self._targets, (cluster,))
        is_target = place < len(self._targets) and self._targets[place].cluster == cluster
        reason = self._clusters[cluster]
        if reason.rule == "candidate" and not is_target:
            return replace(reason, rule="not-chosen", text=f"a candidate ({reason.text}), but nothing falls to it")
        if is_target and reason.rule not in OPEN:
            return replace(reason, rule="kept", text=f"kept until something else can take it, although: {reason.text}")
        return reason

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Outcomes):
            names, others = ([target.cluster for target in one._targets] for one in (self, other))
            return self._clusters == other._clusters and names == others
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]  # A mapping has none either.
