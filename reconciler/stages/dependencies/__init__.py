"""What travels with a workload: what it refers to, its Namespace, the autoscalers that scale it."""

from reconciler.stages.dependencies.autoscaling import Autoscaling
from reconciler.stages.dependencies.companions import CompanionIndex, CompanionTables, companions
from reconciler.stages.dependencies.defined_kinds import with_defined_kinds
from reconciler.stages.dependencies.dependencies import LabelledTemplates, dependencies, may_be_missing
from reconciler.stages.dependencies.links import LinkTables
from reconciler.stages.dependencies.namespaces import (
    NAMESPACE_FOLLOWS,
    NamespaceTables,
    bare_namespace,
    comes_by_itself,
    namespace_identity,
    namespaces,
)

__all__ = [
    "NAMESPACE_FOLLOWS",
    "Autoscaling",
    "CompanionIndex",
    "CompanionTables",
    "LabelledTemplates",
    "LinkTables",
    "NamespaceTables",
    "bare_namespace",
    "comes_by_itself",
    "companions",
    "dependencies",
    "may_be_missing",
    "namespace_identity",
    "namespaces",
    "with_defined_kinds",
]
