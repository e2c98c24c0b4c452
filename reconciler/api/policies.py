"""Propagation and override policies, normalised: both ACK generations and Karmada's group become this one model.

Source of the fields: the page "PropagationPolicy and OverridePolicy" (both generations) and Karmada's
`policy.karmada.io/v1alpha1`. Defaults that depend on the API group are already resolved here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from reconciler.api.problem import NOWHERE, Source
from reconciler.api.refs import PolicyRef


class Operator(StrEnum):
    """Operators of label and field requirements."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRequirement(Struct, frozen=True, kw_only=True):
    """One `matchExpressions` entry. `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the requirement; NotIn is met when the key is missing."""
        match self.operator:
            case Operator.IN:
                return self.key in labels and labels[self.key] in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


class LabelSelector(Struct, frozen=True, kw_only=True):
    """All requirements must hold; without any, everything matches. matchLabels entries are In with one value."""

    requirements: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


class Flavor(StrEnum):
    """The API group of a policy; it decides defaults and some deletion rules."""

    ACK = "ack"
    """`policy.one.alibabacloud.com/v1alpha1`."""
    ACK_LEGACY = "ack-legacy"
    """`one.alibabacloud.com/v1alpha1`: clusterIds, prune, conflictResolution."""
    KARMADA = "karmada"
    """`policy.karmada.io/v1alpha1`."""

    @property
    def is_ack(self) -> bool:
        """Return whether the ACK rules hold (deletion, tiers, keep by default)."""
        return self is not Flavor.KARMADA


class ResourceSelector(Struct, frozen=True, kw_only=True):
    """A selection of templates. apiVersion and kind compare exactly; a name makes the label selector irrelevant."""

    api_version: str
    kind: str
    namespace: str = ""
    """Empty: any namespace that the policy may select in."""
    name: str = ""
    labels: LabelSelector | None = None
    source: Source = NOWHERE


class ClusterAffinity(Struct, frozen=True, kw_only=True):
    """Exclusion comes first, then labels AND fields AND names. Empty names: any cluster; all empty: every cluster.

    `fields`: of `fieldSelector.matchExpressions`: In or NotIn, of provider, region or zone.
    """

    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    labels: LabelSelector | None = None
    fields: tuple[LabelRequirement, ...] = ()
    source: Source = NOWHERE


class AffinityTerm(Struct, frozen=True, kw_only=True):
    """One group of `clusterAffinities`; `overflow` are Karmada's tiers inside it, in order."""

    name: str
    affinity: ClusterAffinity
    overflow: tuple[AffinityTerm, ...] = ()


class Toleration(Struct, frozen=True, kw_only=True):
    """A cluster toleration. An empty key with Exists tolerates everything; an empty effect matches every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_s: int | None = None


class SpreadConstraint(Struct, frozen=True, kw_only=True):
    """`by_field` is cluster, region, zone or provider, or empty with `by_label`. `max_groups` 0: none was given."""

    by_field: str = ""
    by_label: str = ""
    min_groups: int = 1
    max_groups: int = 0
    source: Source = NOWHERE


class StaticWeight(Struct, frozen=True, kw_only=True):
    """One `staticWeightList` entry. A missing targetCluster is an empty affinity: it matches every cluster."""

    target: ClusterAffinity
    weight: int
    source: Source = NOWHERE


class Division(StrEnum):
    """The division of replicas, after all defaults."""

    DUPLICATED = "duplicated"
    STATIC = "static-weight"
    DYNAMIC = "dynamic-weight"
    AGGREGATED = "aggregated"

    @property
    def needs_capacity(self) -> bool:
        """Return whether free capacity decides, and the previous placement is kept (steady)."""
        return self in (Division.DYNAMIC, Division.AGGREGATED)


class ReplicaScheduling(Struct, frozen=True, kw_only=True):
    """Absent altogether means Duplicated; present without a type means Divided; Divided without a preference, Weighted.

    `static_weights` is empty when none was given: then every candidate weighs 1.
    """

    division: Division = Division.DUPLICATED
    static_weights: tuple[StaticWeight, ...] = ()
    has_weight_preference: bool = False
    """True if weightPreference was written at all: an empty one lets spread constraints apply, a missing one not."""
    gang: bool = False
    source: Source = NOWHERE


class Placement(Struct, frozen=True, kw_only=True):
    """The placement of a policy. At most one of `affinity` and `terms` is set; neither means every cluster."""

    affinity: ClusterAffinity | None = None
    terms: tuple[AffinityTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    scheduling: ReplicaScheduling = ReplicaScheduling()
    source: Source = NOWHERE


class PurgeMode(StrEnum):
    """The treatment of the old copy of a failed application. Graciously = Gracefully, Immediately = Directly."""

    IMMEDIATELY = "Immediately"
    GRACIOUSLY = "Graciously"
    NEVER = "Never"


class StatePreservationRule(Struct, frozen=True, kw_only=True):
    """A status field that is copied as a label to the new copy."""

    alias_label: str
    json_path: str


class ApplicationFailover(Struct, frozen=True, kw_only=True):
    """`failover.application`. `grace_period_s` is 600 under Graciously unless given, else None."""

    toleration_s: int = 300
    purge_mode: PurgeMode = PurgeMode.GRACIOUSLY
    grace_period_s: int | None = 600
    state_preservation: tuple[StatePreservationRule, ...] = ()
    """Without effect; plans show how it differs."""
    source: Source = NOWHERE


class ConflictResolution(StrEnum):
    """The treatment of an object that exists and is not ours."""

    ABORT = "Abort"
    OVERWRITE = "Overwrite"


class AffinityMode(StrEnum):
    """The meaning of ordered clusterAffinities: tiers that spill over, or groups of which one is in use."""

    TIERS = "tiers"
    EXCLUSIVE = "exclusive"


class Companion(StrEnum):
    """Kinds that belong to a workload without a reference from it, and are placed with it on request."""

    SERVICES = "services"
    INGRESSES = "ingresses"
    ROUTES = "routes"
    AUTOSCALERS = "autoscalers"
    BUDGETS = "budgets"


class Suspension(Struct, frozen=True, kw_only=True):
    """Writing stops: to every cluster, or to the named ones."""

    dispatching: bool = False
    clusters: tuple[str, ...] = ()
    former: Suspension | None = None
    """That of the revision before, as long as it counts too."""

    @property
    def is_any(self) -> bool:
        """Return whether writing stops to any cluster."""
        return self.dispatching or bool(self.clusters) or self.former is not None

    def covers(self, cluster: str) -> bool:
        """Return whether writing to a cluster stops, the former one aside."""
        return self.dispatching or cluster in self.clusters

    def joined(self, other: Suspension) -> Suspension:
        """Return what stops by either, the former ones aside."""
        if self.dispatching or other.dispatching:
            return Suspension(dispatching=True)
        return Suspension(clusters=tuple(sorted({*self.clusters, *other.clusters})))


class PropagationPolicy(Struct, frozen=True, kw_only=True):
    """A PropagationPolicy, or a ClusterPropagationPolicy when `ref.namespace` is empty.

    Fields without effect here are checked when it is read, and are not in it.
    """

    ref: PolicyRef
    flavor: Flavor
    source: Source
    selectors: tuple[ResourceSelector, ...] = ()
    placement: Placement = Placement()
    keep: bool = True
    """preserveResourcesOnDeletion with the group's default resolved (older API: not prune)."""
    propagate_deps: bool = False
    priority: int = 0
    dependent_overrides: tuple[str, ...] = ()
    dependent_source: Source = NOWHERE
    application_failover: ApplicationFailover | None = None
    conflict_resolution: ConflictResolution = ConflictResolution.ABORT
    suspension: Suspension = Suspension()
    suspension_source: Source = NOWHERE
    """Of the names of clusters."""
    priority_class: str = ""
    ecs_provision: bool = False
    affinity_mode: AffinityMode = AffinityMode.TIERS
    """Resolved: the annotation `fleet.reconciler/affinity-mode`, else tiers for ACK groups under a division that
    needs capacity, else exclusive."""
    fail_back: bool = False
    """The annotation `fleet.reconciler/fail-back`: go back to an earlier group as soon as it takes all again."""
    brings: frozenset[Companion] = frozenset()
    """The annotation `fleet.reconciler/bring`: companions of this policy's workloads."""
    digest: str = ""
    """Of the whole document: the key of cached schedules."""


class OverrideOperator(StrEnum):
    """The operator of an overrider."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


class ImageComponent(StrEnum):
    """The parts of `[registry/]repository[:tag][@digest]`."""

    REGISTRY = "Registry"
    REPOSITORY = "Repository"
    TAG = "Tag"


class ImageOverrider(Struct, frozen=True, kw_only=True):
    """Changes one component of image references. `predicate` is a JSON pointer; empty: all images."""

    component: ImageComponent
    operator: OverrideOperator
    value: str = ""
    predicate: str = ""
    source: Source = NOWHERE


class CommandOverrider(Struct, frozen=True, kw_only=True):
    """`commandOverrider` and `argsOverrider`: adds to or removes from one container's list."""

    container: str
    operator: OverrideOperator
    values: tuple[str, ...] = ()
    source: Source = NOWHERE


class MapOverrider(Struct, frozen=True, kw_only=True):
    """`labelsOverrider` and `annotationsOverrider`."""

    operator: OverrideOperator
    values: tuple[tuple[str, str], ...] = ()
    source: Source = NOWHERE


class PatchOperation(Struct, frozen=True, kw_only=True):
    """One RFC 6902 operation; only add, replace and remove exist here. `value` is meaningless for remove."""

    operator: OverrideOperator
    path: str
    value: Any = None
    source: Source = NOWHERE


class FieldOverrider(Struct, frozen=True, kw_only=True):
    """Patches JSON or YAML that is kept inside a string field."""

    field_path: str
    syntax: str
    """`json` or `yaml`."""
    operations: tuple[PatchOperation, ...] = ()
    source: Source = NOWHERE


class Overriders(Struct, frozen=True, kw_only=True):
    """In the order in which they apply within a rule."""

    image: tuple[ImageOverrider, ...] = ()
    command: tuple[CommandOverrider, ...] = ()
    args: tuple[CommandOverrider, ...] = ()
    labels: tuple[MapOverrider, ...] = ()
    annotations: tuple[MapOverrider, ...] = ()
    field: tuple[FieldOverrider, ...] = ()
    plaintext: tuple[PatchOperation, ...] = ()


class OverrideRule(Struct, frozen=True, kw_only=True):
    """Overriders for the clusters that `target` matches; None: every cluster."""

    target: ClusterAffinity | None
    overriders: Overriders
    source: Source = NOWHERE


class OverridePolicy(Struct, frozen=True, kw_only=True):
    """An OverridePolicy, or a ClusterOverridePolicy when `ref.namespace` is empty. No selectors: every resource."""

    ref: PolicyRef
    flavor: Flavor
    source: Source
    selectors: tuple[ResourceSelector, ...] = ()
    rules: tuple[OverrideRule, ...] = ()
    digest: str = ""
