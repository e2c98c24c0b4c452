"""Rollout documents, their stages and windows, and promotions from one folder to another."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.api.policies import ClusterAffinity, LabelSelector
from reconciler.api.problem import NOWHERE, Problem, Source
from reconciler.api.refs import ResourceRef


class Amount(Struct, frozen=True):
    """A number of clusters; with `is_percent` a share of them, from 0 to 100."""

    number: int
    is_percent: bool = False

    def __str__(self) -> str:
        return f"{self.number}{'%' if self.is_percent else ''}"


def number_of(amount: Amount, total: int, *, least: int) -> int:
    """Return the number of clusters out of `total`, at least `least`. Shares are rounded down.

    Source: KubeFleet: maxConcurrency, "rounded down, at least 1".

    >>> quarter = Amount(25, is_percent=True)
    >>> number_of(quarter, 3, least=1), number_of(quarter, 9, least=1), number_of(Amount(5), 3, least=1)
    (1, 2, 5)
    """
    return max(total * amount.number // 100 if amount.is_percent else amount.number, least)


class Cron(Struct, frozen=True, kw_only=True):
    """Five fields of cron as the values that they allow. Sunday is 0.

    `any_hour`, `any_day`, `any_weekday`: the field begins with `*`. Where neither the day of the month nor the weekday
    does, one of the two is enough; where one does, both must hold. Source: crontab(5).
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_hour: bool = False
    any_day: bool = False
    any_weekday: bool = False


class WindowKind(StrEnum):
    """The effect of a window while it lasts."""

    ALLOW = "allow"
    """Changes are made in windows of this kind alone; several add up."""
    DENY = "deny"
    """No changes are made; it wins over any other."""


class Window(Struct, frozen=True, kw_only=True):
    """A time that begins again and again, and lasts so many seconds. `time_zone`: a name of the IANA data base."""

    kind: WindowKind = WindowKind.ALLOW
    cron: Cron
    duration_s: int
    time_zone: str = "UTC"
    source: Source = NOWHERE


class FleetWindow(Struct, frozen=True, kw_only=True):
    """A window of the Fleet document: its clusters, and whether drift is healed while they are closed."""

    window: Window
    clusters: ClusterAffinity = ClusterAffinity()
    heals_drift: bool = True


class Ancestry(Struct, frozen=True, kw_only=True):
    """Revisions that were asked for, beside a head.

    `order`: those that are the head or its ancestors, and the head itself, the oldest first. One that is not in it is
    none, or is so old that it was not looked for any further.
    `missing`: those that the store does not have, or that cannot be read.
    """

    order: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()


class OnFailure(StrEnum):
    """The reaction to more failures than a stage tolerates."""

    PAUSE = "Pause"
    CONTINUE = "Continue"


class OnNewCommit(StrEnum):
    """The effect of a new commit on the one under way."""

    RESTART = "restart"
    """It takes its place, beginning with the first stage."""
    QUEUE = "queue"
    """It waits until that one is done."""


class ChangeTime(StrEnum):
    """The time of changes that stages do not delay by themselves."""

    LAST = "last"
    """Deletions: after the last stage. Placement: when the last stage begins."""
    WITH_STAGE = "withStage"
    """Deletions: in each cluster with its turn."""
    NOW = "now"
    """Placement: at once, everywhere."""


class ConditionCheck(Struct, frozen=True, kw_only=True, tag="condition"):
    """A condition that an object must have. `of` None: a copy of the rollout has it, and no other copy denies it."""

    condition: str
    status: str = "True"
    of: ResourceRef | None = None
    source: Source = NOWHERE


class MetricCheck(Struct, frozen=True, kw_only=True):
    """A query of PromQL, `$cluster` in it being the cluster, whose value must compare so with a threshold for `for_s`.

    `comparison`: `<`, `<=`, `>`, `>=` or `==`.
    """

    query: str
    comparison: str
    threshold: float
    for_s: int = 0


class Gate(Struct, frozen=True, kw_only=True):
    """The conditions on a cluster before its turn is over.

    `min_success_s`: for so long without a break. `timeout_s`: from its first write, after which a cluster without
    success has failed. `on_failure`: the reaction to more than `max_failures` failures.
    """

    healthy: bool = True
    checks: tuple[ConditionCheck, ...] = ()
    metrics: tuple[MetricCheck, ...] = ()
    min_success_s: int = 0
    timeout_s: int = 1800
    max_failures: Amount = Amount(0)
    on_failure: OnFailure = OnFailure.PAUSE


class After(Struct, frozen=True, kw_only=True):
    """The conditions between a stage and the next one. `wait_s`: from its last completion."""

    wait_s: int = 0
    approval: bool = False


class Stage(Struct, frozen=True, kw_only=True):
    """Some clusters, and how a change goes over them. `order_by_label`: empty orders by name alone."""

    name: str
    clusters: ClusterAffinity | None = None
    """None: every cluster that no other stage has (`clusters: {}`)."""
    max_concurrency: Amount = Amount(1)
    order_by_label: str = ""
    gate: Gate = Gate()
    after: After = After()
    windows: tuple[Window, ...] = ()
    source: Source = NOWHERE


class TemplateScope(Struct, frozen=True, kw_only=True):
    """A selection of templates; all given fields must hold.

    `policies`: `NAMESPACE/NAME`, or a cluster policy's name.
    """

    policies: tuple[str, ...] = ()
    labels: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()

    @property
    def precision(self) -> tuple[bool, bool, bool]:
        """The larger one is the more specific: by policy, then by label, then by namespace."""
        return (bool(self.policies), self.labels is not None, bool(self.namespaces))


class Approval(Struct, frozen=True, kw_only=True):
    """Somebody let a revision leave a stage. `revision`: a commit id or its beginning. `until`: RFC 3339, or empty."""

    stage: str
    revision: str
    until: str = ""
    source: Source = NOWHERE


class Rollout(Struct, frozen=True, kw_only=True):
    """The staged roll-out of changes of some templates. `pins`: stage or cluster to a revision, without any gate.

    `rollback_window_s`: for so long a cluster goes back to what it had completed at once; 0: it takes its turn.
    `is_yielding`: what others select too goes with these. `is_removed`: the newest revision has no such document.
    """

    name: str
    stages: tuple[Stage, ...]
    templates: TemplateScope = TemplateScope()
    on_new_commit: OnNewCommit = OnNewCommit.RESTART
    deletions: ChangeTime = ChangeTime.LAST
    placement: ChangeTime = ChangeTime.NOW
    rollback_window_s: int = 0
    approvals: tuple[Approval, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    source: Source = NOWHERE
    is_yielding: bool = False
    is_removed: bool = False


class StageLayout(Struct, frozen=True):
    """A stage and its clusters in the order of their turns."""

    stage: Stage
    clusters: tuple[str, ...]


class Layout(Struct, frozen=True, kw_only=True):
    """The stages in order. `is_sound` False: it is not clear where a cluster belongs, and nothing begins."""

    stages: tuple[StageLayout, ...]
    outside: tuple[str, ...] = ()
    """Clusters that are in no stage."""
    problems: tuple[Problem, ...] = ()
    is_sound: bool = True

    @property
    def stage_of(self) -> dict[str, StageLayout]:
        """The stage of each cluster."""
        return {cluster: stage for stage in self.stages for cluster in stage.clusters}


class FollowClass(StrEnum):
    """A class of fields of `spec.follow`."""

    IMAGES = "images"
    VALUES = "values"
    REVISION = "revision"


class Promotion(Struct, frozen=True, kw_only=True):
    """A document of kind `Promotion`: fields of the folder `target` that follow those of `origin`.

    `namespaces`: of the origin, to those of the target. `fields`, `stay`: paths as plans write them.
    """

    name: str
    origin: str
    target: str
    namespaces: Mapping[str, str] = field(default_factory=dict)
    follow: frozenset[FollowClass] = frozenset({FollowClass.IMAGES, FollowClass.REVISION})
    fields: tuple[str, ...] = ()
    stay: tuple[str, ...] = ()
    source: Source = NOWHERE
    target_source: Source = NOWHERE
