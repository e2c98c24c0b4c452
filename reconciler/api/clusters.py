"""Member clusters as the store declares them and as they were last observed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

from reconciler.api.binding import Constraint, PreviousPlacement
from reconciler.api.content import JsonObject
from reconciler.api.demand import NO_RESOURCES, Resources
from reconciler.api.problem import NOWHERE, Source
from reconciler.api.refs import GVK, Identity


class Taint(Struct, frozen=True, kw_only=True):
    """A taint of a cluster or a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Cluster(Struct, frozen=True, kw_only=True):
    """A member: `Cluster` of Karmada's group, `ManagedCluster` or `ClusterProfile`. Credentials never live here."""

    name: str
    namespace: str = ""
    """Of its ClusterProfile, which has one; no part of the cluster's name."""
    alias: str = ""
    """From the alias annotation, else of a ClusterProfile its displayName; shown as CLUSTER_ALIAS."""
    labels: Mapping[str, str] = field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    context: str = ""
    """Annotation `fleet.reconciler/context`; empty: the context has the cluster's name."""
    pulls: bool = False
    """`spec.syncMode: Pull`: a process of its own applies there; others leave the cluster alone unless they name it."""
    source: Source = NOWHERE

    @property
    def context_name(self) -> str:
        """The kubeconfig context that reaches this cluster."""
        return self.context or self.name


class Health(StrEnum):
    """Health of one object in one cluster. A kind without a rule of its own is judged as kstatus does."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class RunOutcome(StrEnum):
    """The outcome of an object that runs to an end."""

    RUNS = "Runs"
    """It has not ended, or nothing of its kind ends."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ClusterNode(Struct, frozen=True, kw_only=True):
    """A node with its free capacity. `requested` holds the requests of pods bound to it, `pods` being their number."""

    name: str
    ready: bool = True
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = field(default_factory=lambda: NO_RESOURCES)
    requested: Resources = field(default_factory=lambda: NO_RESOURCES)


class Quota(Struct, frozen=True, kw_only=True):
    """A ResourceQuota; `hard` and `used` carry its own keys (`requests.cpu`, `pods`, …)."""

    namespace: str
    hard: Resources = field(default_factory=lambda: NO_RESOURCES)
    used: Resources = field(default_factory=lambda: NO_RESOURCES)


class PendingPods(Struct, frozen=True, kw_only=True):
    """Pods of one namespace that wait for a node, with one refusal.

    `names`: the first of them. `refusal`: why no node ever takes them, so that they take no capacity; empty: one may.
    """

    namespace: str
    pods: int
    names: tuple[str, ...] = ()
    refusal: str = ""


class Workload(Struct, frozen=True, kw_only=True):
    """A workload as it runs in one cluster. Times are RFC 3339 UTC, empty when not so."""

    gvk: GVK
    identity: Identity
    replicas: int = 0
    ready: int = 0
    unschedulable: int = 0
    unschedulable_since: str = ""
    health: Health = Health.UNKNOWN
    unhealthy_since: str = ""
    ended_by_itself: bool = False
    """It failed for good by its own fault (an exit code, a limit of its own): in another cluster it would as well."""
    assigned: int | None = None
    """The number of replicas assigned to the live object, from its mark; None: it has none."""
    of_fleet: str | None = None
    """The fleet whose label it has, empty: none; None: not known."""
    missing: int = 0
    """Pods that it wants and that were not there yet, or no longer."""
    without_node: int | None = None
    """Pods of it that no scheduler has given a node to, looked at or not; None: not known."""
    established: int | None = None
    """With how many replicas it was recorded to have served; None: it never did, or that is not known."""
    held: Mapping[str, Resources] | None = None
    """The resources of its pods on each node, if some are unschedulable and it was looked up."""


class ClusterObservation(Struct, frozen=True, kw_only=True):
    """Capacity and workloads of a cluster. `apis` None: not known, built-in kinds are assumed."""

    name: str
    reachable: bool = True
    observed_at: str = ""
    kube_version: str = ""
    """As its API server tells it, `v1.36.3`; empty: it was not asked."""
    apis: frozenset[GVK] | None = None
    pending_requests: Resources = field(default_factory=lambda: NO_RESOURCES)
    """Requests of pods that wait for a node, less those that no node will ever take."""
    pending: tuple[PendingPods, ...] = ()
    """The pods that wait for a node, those included that no node will ever take."""
    quotas: tuple[Quota, ...] = ()
    nodes: tuple[ClusterNode, ...] | None = None
    """None: nodes could not be read, so free capacity is unknown."""
    workloads: Mapping[Identity, Workload] = field(default_factory=dict)
    unlisted: tuple[Unlisted, ...] = ()
    """Kinds that could not be listed, each with the reason."""
    silent: frozenset[str] = frozenset()
    """Group versions whose API server does not answer: whether their kinds are served is not known."""
    pods: Mapping[Identity, int] | None = None
    """The pods that each workload of the cluster has there, looked at or not; None: not known."""


def workload_in(clusters: Mapping[str, ClusterObservation], identity: Identity, cluster: str) -> Workload | None:
    """A workload as it runs in a cluster that answers; None: it was not seen there."""
    observed = clusters.get(cluster)
    return observed.workloads.get(identity) if observed is not None and observed.reachable else None


class Observations(Struct, frozen=True, kw_only=True):
    """The observations of the members: from the clusters themselves or from an `--observations` file."""

    clusters: Mapping[str, ClusterObservation] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    previous: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    """The reason of each write block, by the scope of a person's order: `fleet`, `cluster NAME`, or a subject."""


class LiveObject(Struct, frozen=True, kw_only=True):
    """An object as an API server returned it, managedFields and status included."""

    gvk: GVK
    identity: Identity
    uid: str
    resource_version: str
    body: JsonObject


class Present(Struct, frozen=True, kw_only=True):
    """The object is there."""

    object: LiveObject


class Absent(Struct, frozen=True):
    """Proven absence: a read answered 404, or a complete list of everything in the namespace lacks it."""


class Unknown(Struct, frozen=True, kw_only=True):
    """Could not be read: nothing may be concluded. `why` is fit for a user; empty: an answer is still to come."""

    why: str


Live = Present | Absent | Unknown


class LastHealth(NamedTuple):
    """The health of an object at the last look. `available`: replicas; None: not counted."""

    health: Health
    available: int | None = None


class Listed(NamedTuple):
    """A list of a kind, in one namespace or (empty) in all of them."""

    gvk: GVK
    namespace: str = ""


class UnlistedCause(StrEnum):
    """The reason why a kind cannot be listed in a cluster that answers."""

    RIGHT_MISSING = "right-missing"
    """Scheduled objects of it are still read by name."""
    NOT_SERVED = "not-served"
    """The cluster does not serve it, and did: something of it was applied there."""
    NOT_READ = "not-read"
    """No usable answer comes: its conversion webhook, or the API server that serves it, fails."""
    THROTTLED = "throttled"
    """The API server asks for a pause."""


class Unlisted(NamedTuple):
    """A failed list: reason and consequence. Nothing is concluded about its kind."""

    what: Listed
    cause: UnlistedCause
    why: str


class Read(Struct, frozen=True, kw_only=True):
    """A cluster that answered.

    `objects`: those with our label, and those read by name. `absent`: proven absences. `kinds`: (group, kind) whose
    labelled list is complete; deletions need their kind to be here. `served`: the kinds that the API server offers with
    their scope (True: namespaced).
    """

    name: str
    objects: Mapping[Identity, LiveObject] = field(default_factory=dict)
    absent: frozenset[Identity] = frozenset()
    kinds: frozenset[tuple[str, str]] = frozenset()
    served: Mapping[GVK, bool] = field(default_factory=dict)
    unread: Mapping[Identity, str] = field(default_factory=dict)
    """Objects that could not be read, with why."""
    under_way: frozenset[Identity] = frozenset()
    """Objects that are being written, or read still: how they are is known when the answers are in."""
    unasked: frozenset[Identity] = frozenset()
    """Objects that a round reads in other clusters alone: here they are at rest, as far as known."""
    autoscaled: frozenset[Identity] = frozenset()
    """Those of `objects` whose replicas an autoscaler in the cluster controls, whoever made it."""
    listed: frozenset[Listed] = frozenset()
    """The lists that were asked for, whatever came of them."""
    unlisted: tuple[Unlisted, ...] = ()
    """Those of them that gave nothing, each with the reason."""
    silent: frozenset[str] = frozenset()
    """Group versions whose API server does not answer: whether their kinds are served is not known."""
    is_whole: bool = False
    """True if every kind that matters there was listed, or tried to be."""
    last_healths: Mapping[Identity, LastHealth] = field(default_factory=dict)
    """Health of objects without status; others report their own."""

    def live(self, identity: Identity) -> Live:
        """The object as far as it is known: Unknown unless it was seen or its absence was proven."""
        live_object = self.objects.get(identity)
        if live_object is not None:
            return Present(object=live_object)
        if identity in self.absent:
            return Absent()
        is_to_come = identity in self.under_way or identity in self.unasked
        return Unknown(why="" if is_to_come else self.unread.get(identity, "not read"))

    def shows(self, identity: Identity) -> bool:
        """Return whether this reading says how the object is."""
        return identity not in self.under_way and identity not in self.unread and identity not in self.unasked


class NotRead(Struct, frozen=True, kw_only=True):
    """A cluster that could not be read; nothing is concluded about it. `why` is fit for a user."""

    name: str
    why: str


Member = Read | NotRead
