"""Decisions: which policy claims a template, on which clusters it lives, and why."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from reconciler.api.problem import NOWHERE, Source
from reconciler.api.refs import Identity, PolicyRef


class Reason(Struct, frozen=True, kw_only=True):
    """The reason of a decision. `rule` is a short stable name; `text` a sentence fragment for people."""

    rule: str
    text: str
    source: Source = NOWHERE
    cluster: str = ""

    def __str__(self) -> str:
        """Return the text with its source."""
        return f"{self.text} ({self.source})" if self.source.path else self.text


class Claim(Struct, frozen=True, kw_only=True):
    """The policy that governs a template, and the policies that also matched, best first, with why they lost."""

    identity: Identity
    policy: PolicyRef
    reasons: tuple[Reason, ...] = ()
    losers: tuple[tuple[PolicyRef, str], ...] = ()


class TargetCluster(NamedTuple):
    """A cluster of a placement. `replicas` is None for a resource without replicas (a ConfigMap)."""

    cluster: str
    replicas: int | None = None


class Binding(Struct, frozen=True, kw_only=True):
    """Template to target clusters, sorted by cluster name.

    `policy` is the owner's for a dependency that follows `owners`. `unplaced`: replicas that found no place.
    `affinity_name`: the exclusive group in use, to be remembered. `cluster_reasons`: for every cluster of the
    fleet that was considered, why it is in or out.
    """

    identity: Identity
    policy: PolicyRef | None
    targets: tuple[TargetCluster, ...] = ()
    unplaced: int = 0
    owners: tuple[Identity, ...] = ()
    is_dependency: bool = False
    """It has no policy of its own and is there for its owners alone."""
    affinity_name: str = ""
    unknown_room: tuple[str, ...] = ()
    """Clusters whose unknown free capacity decides about it: with that it could be placed elsewhere."""
    reasons: tuple[Reason, ...] = ()
    cluster_reasons: Mapping[str, Reason] = field(default_factory=dict)

    def replicas_on(self, cluster: str) -> int | None:
        """Assigned replicas there; None when the cluster is no target or the resource has no replicas."""
        return next((target.replicas for target in self.targets if target.cluster == cluster), None)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the target clusters, sorted."""
        return tuple([target.cluster for target in self.targets])


class PreviousPlacement(Struct, frozen=True, kw_only=True):
    """A previous placement, from the journal, `--observations` or the base revision."""

    identity: Identity
    targets: tuple[TargetCluster, ...]
    affinity_name: str = ""


class Tick(StrEnum):
    """The origin of a constraint on a placement."""

    GIVEN = ""
    """Nobody of ours: it was given with the observations, and holds until its time."""
    DESCHEDULING = "descheduling"
    FAILOVER = "failover"
    RECOVERY = "recovery"
    """The end of an unneeded failover: clusters that had taken over give back."""
    EVICTION = "eviction"
    """No tick, but a person."""


class Constraint(Struct, frozen=True, kw_only=True):
    """A constraint from a tick: at most `replicas_max` replicas of a resource on a cluster. 0 excludes it.

    `until`: RFC 3339 UTC, empty: no expiry. Ticks yield constraints and nothing else; placement does the rest.
    """

    identity: Identity
    cluster: str
    replicas_max: int
    reason: str
    until: str = ""
    excludes: bool = False
    """An exclusion (failover): the cluster is no candidate at all, also for resources without replicas."""
    tick: Tick = Tick.GIVEN
    since: str = ""
    """The time of the tick's decision."""
    basis: str = ""
    """A digest of its inputs: the tick decides again when it changes."""
    before: tuple[TargetCluster, ...] = ()
    """The placement that an exclusion changed, for an application that recovers in time."""
