"""Dependencies of a workload: its references, its Namespace, the autoscalers that scale it."""

from reconciler.stages.dependencies.autoscaling import Autoscaling
from reconciler.stages.dependencies.companions import CompanionIndex, CompanionTables, companions
from reconciler.stages.dependencies.defined_kinds import with_defined_kinds
from reconciler.stages.dependencies.dependencies import dependencies, may_be_missing
from reconciler.stages.dependencies.links import LinkTables
from reconciler.stages.dependencies.makers import NO_MAKERS, Makers
from reconciler.stages.dependencies.namespaces import (
    NAMESPACE_FOLLOWS,
    NamespaceTables,
    bare_namespace,
    comes_by_itself,
    namespace_identity,
    namespaces,
)
from reconciler.stages.dependencies.operators import operator_parts
from reconciler.stages.dependencies.sources import Sources
from reconciler.stages.dependencies.travel import travel

__all__ = [
    "NAMESPACE_FOLLOWS",
    "NO_MAKERS",
    "Autoscaling",
    "CompanionIndex",
    "CompanionTables",
    "LinkTables",
    "Makers",
    "NamespaceTables",
    "Sources",
    "bare_namespace",
    "comes_by_itself",
    "companions",
    "dependencies",
    "may_be_missing",
    "namespace_identity",
    "namespaces",
    "operator_parts",
    "travel",
    "with_defined_kinds",
]
