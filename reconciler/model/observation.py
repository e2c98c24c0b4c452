"""What we last saw of a member cluster. Unknown is not absent: an unreachable cluster has no observation of objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.binding import Constraint, PreviousPlacement
from reconciler.model.cluster import Taint
from reconciler.model.quantity import NO_RESOURCES, Resources
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject


class Health(StrEnum):
    """Health of one object in one cluster. A kind without a rule is Healthy."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node with its free room. `requested` holds the requests of pods bound to it, `pods` being their number."""

    name: str
    ready: bool = True
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = field(default_factory=lambda: NO_RESOURCES)
    requested: Resources = field(default_factory=lambda: NO_RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota; `hard` and `used` carry its own keys (`requests.cpu`, `pods`, …)."""

    namespace: str
    hard: Resources = field(default_factory=lambda: NO_RESOURCES)
    used: Resources = field(default_factory=lambda: NO_RESOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload as it runs in one cluster. Times are RFC 3339 UTC, empty when not so."""

    gvk: GVK
    identity: Identity
    replicas: int = 0
    ready: int = 0
    unschedulable: int = 0
    unschedulable_since: str = ""
    health: Health = Health.UNKNOWN
    unhealthy_since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObservation:
    """Capacity and workloads of a cluster. `apis` None: not known, built-in kinds are assumed."""

    name: str
    reachable: bool = True
    observed_at: str = ""
    apis: frozenset[GVK] | None = None
    pending_requests: Resources = field(default_factory=lambda: NO_RESOURCES)
    quotas: tuple[Quota, ...] = ()
    nodes: tuple[Node, ...] | None = None
    """None: nodes could not be read, so free capacity is unknown."""
    workloads: Mapping[Identity, Workload] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All that is known of the members: from the clusters themselves or from an `--observations` file."""

    clusters: Mapping[str, ClusterObservation] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    previous: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveObject:
    """An object as an API server returned it, managedFields and status included."""

    gvk: GVK
    identity: Identity
    uid: str
    resource_version: str
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The object is there."""

    object: LiveObject


@dataclass(frozen=True, slots=True)
class Absent:
    """Proven absence: a read said 404, or a complete list of everything in the namespace lacks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Could not be read: nothing may be concluded. `why` is fit for a user."""

    why: str


Live = Present | Absent | Unknown
