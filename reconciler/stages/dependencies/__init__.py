"""What travels with a workload: what it refers to, its Namespace, the autoscalers that scale it."""

from reconciler.stages.dependencies.autoscaled import AutoscaledMemo
from reconciler.stages.dependencies.companions import CompanionIndex, CompanionMemo, companions
from reconciler.stages.dependencies.defined_kinds import with_defined_kinds
from reconciler.stages.dependencies.dependencies import LabelledTemplates, dependencies, may_be_missing
from reconciler.stages.dependencies.memo import Again, LinkMemo
from reconciler.stages.dependencies.namespaces import (
    NAMESPACE_FOLLOWS,
    NamespaceMemo,
    bare_namespace,
    comes_by_itself,
    namespace_identity,
    namespaces,
)
from reconciler.stages.dependencies.scale_targets import ScaleMemo, scale_targets

__all__ = [
    "NAMESPACE_FOLLOWS",
    "Again",
    "AutoscaledMemo",
    "CompanionIndex",
    "CompanionMemo",
    "LabelledTemplates",
    "LinkMemo",
    "NamespaceMemo",
    "ScaleMemo",
    "bare_namespace",
    "comes_by_itself",
    "companions",
    "dependencies",
    "may_be_missing",
    "namespace_identity",
    "namespaces",
    "scale_targets",
    "with_defined_kinds",
]
