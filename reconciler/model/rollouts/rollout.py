"""Documents of kind Rollout (`fleet.reconciler/v1alpha1`): the stages in which a change goes over the clusters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.policy import ClusterAffinity, LabelSelector
from reconciler.model.problem import NOWHERE, Source
from reconciler.model.refs import GVK
from reconciler.model.rollouts.amount import Amount, Count
from reconciler.model.rollouts.window import Window


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


class When(StrEnum):
    """The time of changes that stages do not delay by themselves."""

    LAST = "last"
    """Deletions: after the last stage. Placement: when the last stage begins."""
    WITH_STAGE = "withStage"
    """Deletions: in each cluster with its turn."""
    NOW = "now"
    """Placement: at once, everywhere."""


class ObjectName(Struct, frozen=True, kw_only=True):
    """One object in a cluster. The namespace of a cluster-scoped one is empty."""

    gvk: GVK
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Job shop/smoke`."""
        return f"{self.gvk.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.gvk.kind} {self.name}"


class ConditionCheck(Struct, frozen=True, kw_only=True, tag="condition"):
    """A condition that an object must have. `of` None: a copy of the rollout has it, and no other copy denies it."""

    condition: str
    status: str = "True"
    of: ObjectName | None = None
    source: Source = NOWHERE


class ExpressionCheck(Struct, frozen=True, kw_only=True, tag="expression"):
    """A CEL expression over `status` of an object, which must be true."""

    of: ObjectName
    cel: str
    source: Source = NOWHERE


Check = ConditionCheck | ExpressionCheck


class Gate(Struct, frozen=True, kw_only=True):
    """The conditions on a cluster before its turn is over.

    `min_success_s`: for so long without a break. `timeout_s`: from its first write, after which a cluster without
    success has failed. `on_failure`: the reaction to more than `max_failures` failures.
    """

    healthy: bool = True
    checks: tuple[Check, ...] = ()
    min_success_s: int = 0
    timeout_s: int = 1800
    max_failures: Amount = Count(0)
    on_failure: OnFailure = OnFailure.PAUSE


class After(Struct, frozen=True, kw_only=True):
    """The conditions between a stage and the next one. `wait_s`: from its last completion."""

    wait_s: int = 0
    approval: bool = False


class TheRest(Struct, frozen=True, tag="rest"):
    """`clusters: {}`: every cluster that no other stage has."""


class Chosen(Struct, frozen=True, tag="chosen"):
    """The clusters that an affinity matches."""

    affinity: ClusterAffinity


class Stage(Struct, frozen=True, kw_only=True):
    """Some clusters, and how a change goes over them. `order_by_label`: empty orders by name alone."""

    name: str
    clusters: TheRest | Chosen
    max_concurrency: Amount = Count(1)
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
    """The staged roll-out of changes of some templates. `pins`: stage or cluster to a revision, without any gate."""

    name: str
    stages: tuple[Stage, ...]
    templates: TemplateScope = TemplateScope()
    on_new_commit: OnNewCommit = OnNewCommit.RESTART
    deletions: When = When.LAST
    placement: When = When.NOW
    approvals: tuple[Approval, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    source: Source = NOWHERE
