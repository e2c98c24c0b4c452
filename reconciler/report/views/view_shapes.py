"""The shapes of `/api/v1` and of the pages. In JSON their names are camel case.

Every text in them is redacted already, and plain: who draws it escapes it. Times are RFC 3339 in UTC; null means
unknown or not applicable. Names and meanings never change within a version; more may come. Source: ADR 17.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct


class ResourceView(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object of the store. `namespace` is empty if it is cluster-scoped."""

    api_version: str
    kind: str
    namespace: str
    name: str


class CommitPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """The active revision; the words are null if it is no known commit."""

    revision: str
    author: str | None = None
    subject: str | None = None
    time: str | None = None


class SourcePart(Struct, frozen=True, kw_only=True, rename="camel"):
    """The store. `error`: its present error; the last good revision stays active.

    `commit_url`, `file_url`: where its forge shows them, with `{revision}`, `{path}` and `{line}`; null: not known.
    """

    description: str
    read_at: str | None = None
    error: str | None = None
    commit_url: str | None = None
    file_url: str | None = None


class ClusterCounts(Struct, frozen=True, kw_only=True, rename="camel"):
    """`in_sync`: that answer and hold nothing that is not as wanted. `left`: whose document was taken away."""

    total: int
    in_sync: int
    away: int
    left: int


class Weight(StrEnum):
    """Urgency."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class AlertKind(StrEnum):
    """The kind of an alert, or the reason of a state; of one weight, the first ones come first."""

    SOURCE = "source"
    """The store cannot be read."""
    AWAY = "away"
    FAILED = "failed"
    DEGRADED = "degraded"
    REFUSED = "refused"
    FOUGHT = "fought"
    FROZEN = "frozen"
    HELD = "held"
    STUCK = "stuck"
    """A move that waits for longer than usual, or pods without a node."""
    LEFT = "left"
    ROLLOUT = "rollout"
    """A stage is paused, pinned, or waits for an approval."""
    PROBLEM = "problem"
    """A document of the store has a problem, or a round reported one."""
    SUSPENDED = "suspended"
    EVICTED = "evicted"
    MOVED = "moved"
    """Descheduling or failover took it, or a part of it, out of a cluster."""


class Alert(Struct, frozen=True, kw_only=True, rename="camel"):
    """One alert. Equal ones are one, with their count.

    `who`: the person or cause, `where`: `file:line`, `todo`: the next step, `confirm`: the digest that lets it pass.
    """

    weight: Weight
    what: AlertKind
    title: str
    why: str = ""
    cluster: str | None = None
    resource: ResourceView | None = None
    count: int = 1
    since: str | None = None
    who: str | None = None
    revision: str | None = None
    where: str | None = None
    todo: str | None = None
    confirm: str | None = None


class TimerKind(StrEnum):
    """The kind of a timer."""

    FAILOVER = "failover"
    CAP = "cap"
    EXCLUSION = "exclusion"
    EVICTION = "eviction"
    SUSPENSION = "suspension"
    MOVE = "move"
    FIGHT = "fight"


class Timer(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event at `ends` if nothing else happens. `words`: its sentence without the time."""

    what: TimerKind
    words: str
    ends: str
    cluster: str | None = None
    resource: ResourceView | None = None


class StagePart(Struct, frozen=True, kw_only=True, rename="camel"):
    """A stage of a rollout. `state` is a word for machines, `why` the same for people; `there`: how many have it."""

    name: str
    state: str
    """done, running, waits-for-stage, waits-for-time, waits-for-approval, waits-for-window, paused, pinned, skipped or
    unclear."""
    why: str
    clusters: tuple[str, ...] = ()
    there: int = 0
    approval: str | None = None
    """The entry under `spec.approvals` that lets the next stage begin."""


class RolloutPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """A revision on its way over the clusters in stages. `waiting`: a newer one that waits until it is done."""

    name: str
    release: str
    waiting: str | None = None
    is_done: bool = False
    stages: tuple[StagePart, ...] = ()


class InForcePart(Struct, frozen=True, kw_only=True, rename="camel"):
    """The active revision of a rollout in a cluster, and why; null: nothing of it is written there yet."""

    rollout: str
    stage: str | None
    revision: str | None
    phase: str
    """behind, running, done, failed, pinned or frozen."""
    why: str


class FleetView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/fleet`: whether and since when all is in step, by which commit; alerts; timers.

    `since`: the time since which every cluster is in sync, or the first was not. `needs`: the worst first, at most 200
    of `needs_total`. `events`: the newest 20 entries, as of `history`.
    """

    version: int = 1
    reconciler: str
    fleet: str
    mode: str
    """`apply` or `observe`."""
    is_ready: bool
    is_progressing: bool
    phase: str
    time: str | None
    """End of the last round."""
    round: int
    since: str | None
    source: SourcePart
    commit: CommitPart | None
    clusters: ClusterCounts
    objects: dict[str, int]
    """Number of objects by state: synced, pending, held, fought, refused, failed, frozen, unknown, left."""
    health: dict[str, int]
    needs: tuple[Alert, ...] = ()
    needs_total: int = 0
    timers: tuple[Timer, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    rollouts: tuple[RolloutPart, ...] = ()
    """The state of each Rollout of the store."""


class Cell(Struct, frozen=True, kw_only=True, array_like=True):
    """A copy in the matrix. `cluster` counts from 0 in `clusters` of the view. As JSON it is an array in this order."""

    cluster: int
    sync: str
    """Synced, OutOfSync or Unknown."""
    state: str
    """synced, pending, held, fought, refused, failed, frozen, unknown or left."""
    health: str
    """Healthy, Progressing, Degraded, Missing or Unknown."""
    replicas: int | None = None
    ready: int | None = None
    why: str = ""


class MatrixRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload of the matrix with its copies; a cluster without a cell has none.

    `copies`: how many it has, `fine`: those that are in sync and healthy. `workloads`: how many a folded row stands
    for, 0: it is one; its `resource` has only the name that it is folded by.
    """

    resource: ResourceView
    where: str
    cells: tuple[Cell, ...]
    copies: int = 0
    fine: int = 0
    workloads: int = 0


class ClusterHead(Struct, frozen=True, kw_only=True, rename="camel"):
    """A column of the matrix. `clusters`: how many a folded one stands for; 0: it is one."""

    name: str
    is_up: bool
    is_left: bool = False
    is_suspended: bool = False
    why: str = ""
    clusters: int = 0


class MatrixView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/matrix`: workloads by clusters, by namespace and name, those with troubles first if asked.

    `total`: rows that the question found; `rows` is the part from `offset` on. Where rows or columns are folded, a cell
    is the worst of its copies, and counts them and those that are fine in place of replicas.
    """

    version: int = 1
    round: int
    clusters: tuple[ClusterHead, ...]
    rows: tuple[MatrixRow, ...]
    total: int
    offset: int = 0
    namespaces: tuple[str, ...] = ()
    """All that have workloads, whatever was asked for."""
    choices: dict[str, tuple[str, ...]] = {}
    """Values of the filters that have few, whatever was asked for."""


class LastWrite(Struct, frozen=True, kw_only=True, rename="camel"):
    """The last write. `action` is a word of the past: created, updated, healed, adopted."""

    time: str
    action: str
    who: str | None = None
    revision: str | None = None


class CopyPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object in one cluster."""

    cluster: str
    sync: str
    state: str
    health: str
    why: str = ""
    """The reason why it is not in sync."""
    health_why: str = ""
    by: str | None = None
    """The holder, if it is held."""
    replicas: int | None = None
    ready: int | None = None
    last_write: LastWrite | None = None


class FieldDifference(Struct, frozen=True, kw_only=True, rename="camel"):
    """A differing field. Values are as text, redacted; null: absent."""

    cluster: str
    path: str
    live: str | None = None
    wanted: str | None = None
    manager: str | None = None
    """The field's manager, if the API server reports it."""
    time: str | None = None


class Override(Struct, frozen=True, kw_only=True, rename="camel"):
    """The effect of an override policy. `value`: as text, redacted."""

    clusters: tuple[str, ...]
    path: str
    policy: str
    where: str
    value: str | None = None


class Reasoned(Struct, frozen=True, kw_only=True, rename="camel"):
    """A sentence about the reason of its placement, and its source."""

    words: str
    where: str | None = None


class ObjectView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/objects/KIND/NAMESPACE/NAME`: everything about one object of the store; `-` is no namespace.

    `reasons`: the policy, the clusters, the arithmetic, in the words of `explain`; `explanation`: its whole document.
    `brought`: its dependencies. `owners`: the objects that it is a dependency of. `history`: its newest entries.
    """

    version: int = 1
    resource: ResourceView
    where: str
    reasons: tuple[Reasoned, ...] = ()
    explanation: dict[str, Any]
    owners: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    copies: tuple[CopyPart, ...] = ()
    differences: tuple[FieldDifference, ...] = ()
    overrides: tuple[Override, ...] = ()
    needs: tuple[Alert, ...] = ()
    timers: tuple[Timer, ...] = ()
    history: tuple[dict[str, Any], ...] = ()


class CapacityPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """One resource of a cluster, in its base unit (cores, bytes, pods); null if not read."""

    name: str
    allocatable: float | None = None
    used: float | None = None


class PlacedObject(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object in the cluster of the page."""

    resource: ResourceView
    copy: CopyPart


class ClusterView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/clusters/NAME`: one cluster with its objects. `objects`: the worst first, from `offset` on."""

    version: int = 1
    name: str
    is_up: bool
    is_left: bool = False
    why: str = ""
    where: str | None = None
    """The line of its document."""
    server: str | None = None
    """Its address, without credentials."""
    last_contact: str | None = None
    labels: dict[str, str]
    taints: tuple[str, ...] = ()
    counts: dict[str, int]
    health: dict[str, int]
    capacity: tuple[CapacityPart, ...] = ()
    suspended: str | None = None
    """The person and the reason."""
    objects: tuple[PlacedObject, ...] = ()
    total: int = 0
    offset: int = 0
    needs: tuple[Alert, ...] = ()
    timers: tuple[Timer, ...] = ()
    history: tuple[dict[str, Any], ...] = ()
    in_force: tuple[InForcePart, ...] = ()
    """For each Rollout the active revision there."""


class ProblemPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """As in every machine format."""

    severity: str
    code: str
    source: str
    path: str
    message: str
    todo: str | None = None


class ProblemsView(Struct, frozen=True, kw_only=True, rename="camel"):
    """`GET /api/v1/problems`: the worst first."""

    version: int = 1
    problems: tuple[ProblemPart, ...] = ()
    total: int = 0
