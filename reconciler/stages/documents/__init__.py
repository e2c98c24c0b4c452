"""Shared parts of documents of all kinds: tables of fields, names, dialects, scopes. No rule of one kind."""

from reconciler.stages.documents.dialects import FLAVORS, OVERRIDE_KINDS, PROPAGATION_KINDS, is_policy, refused_kind
from reconciler.stages.documents.fields import Fields, Report, document_fields
from reconciler.stages.documents.findings import Findings, not_a_string, type_name
from reconciler.stages.documents.known_types import TypeFault, type_fault, types_meant
from reconciler.stages.documents.metadata import DEFAULT_NAMESPACE, read_flavor, read_name, read_ref
from reconciler.stages.documents.names import (
    is_api_version,
    is_dns_label,
    is_dns_subdomain,
    is_json_pointer,
    is_kind,
    is_label_key,
    is_label_value,
)
from reconciler.stages.documents.own_kinds import OWN_API_VERSION, check_own_api_version, refuse_namespace
from reconciler.stages.documents.policy_annotations import (
    BRING,
    POLICY_ANNOTATIONS,
    check_annotations,
    parse_brings,
    read_affinity_mode,
    read_brings,
    read_fail_back,
)
from reconciler.stages.documents.problem_code import ProblemCode
from reconciler.stages.documents.scopes import BUILT_IN, guessed_plural, is_namespaced
from reconciler.stages.documents.shapes import Field, FieldType, Shape, Status, either_case, exactly, shape, walk
from reconciler.stages.documents.shared_fields import (
    AFFINITY_FIELDS,
    AFFINITY_SHAPE,
    CLUSTER_NAMES,
    LABEL_SELECTOR_SHAPE,
    RESOURCE_SELECTORS,
    TARGET_CLUSTER,
    document_shape,
)
from reconciler.stages.documents.system_namespaces import CONTROL_GROUPS, is_never_distributed, is_system_namespace
from reconciler.stages.documents.times import parse_duration, read_moment, read_seconds

__all__ = [
    "AFFINITY_FIELDS",
    "AFFINITY_SHAPE",
    "BRING",
    "BUILT_IN",
    "CLUSTER_NAMES",
    "CONTROL_GROUPS",
    "DEFAULT_NAMESPACE",
    "FLAVORS",
    "LABEL_SELECTOR_SHAPE",
    "OVERRIDE_KINDS",
    "OWN_API_VERSION",
    "POLICY_ANNOTATIONS",
    "PROPAGATION_KINDS",
    "RESOURCE_SELECTORS",
    "TARGET_CLUSTER",
    "Field",
    "FieldType",
    "Fields",
    "Findings",
    "ProblemCode",
    "Report",
    "Shape",
    "Status",
    "TypeFault",
    "check_annotations",
    "check_own_api_version",
    "document_fields",
    "document_shape",
    "either_case",
    "exactly",
    "guessed_plural",
    "is_api_version",
    "is_dns_label",
    "is_dns_subdomain",
    "is_json_pointer",
    "is_kind",
    "is_label_key",
    "is_label_value",
    "is_namespaced",
    "is_never_distributed",
    "is_policy",
    "is_system_namespace",
    "not_a_string",
    "parse_brings",
    "parse_duration",
    "read_affinity_mode",
    "read_brings",
    "read_fail_back",
    "read_flavor",
    "read_moment",
    "read_name",
    "read_ref",
    "read_seconds",
    "refuse_namespace",
    "refused_kind",
    "shape",
    "type_fault",
    "type_name",
    "types_meant",
    "walk",
]
