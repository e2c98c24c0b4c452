"""Committed output of helm or kustomize: documents, locks, variants as overrides. Runs nothing."""

from reconciler.stages.hydration.codes import HYDRATION_CODES
from reconciler.stages.hydration.difference import first_difference, is_same, operations
from reconciler.stages.hydration.document import RENDER_SHAPE, is_below, is_plain_path, parse_render
from reconciler.stages.hydration.kustomization import (
    Kustomization,
    Standing,
    builds_on,
    is_kustomization,
    read_kustomization,
    resolved,
    round_trip,
)
from reconciler.stages.hydration.lock import (
    KUSTOMIZATIONS,
    blob_id,
    input_folders,
    input_paths,
    is_input,
    is_lock,
    lock_text,
    parse_lock,
    staleness,
)
from reconciler.stages.hydration.objects import Bodies, Rendered, nondeterminism, read_rendered
from reconciler.stages.hydration.proof import disproofs
from reconciler.stages.hydration.variants import Compiled, compile_variants, overlaps

__all__ = [
    "HYDRATION_CODES",
    "KUSTOMIZATIONS",
    "RENDER_SHAPE",
    "Bodies",
    "Compiled",
    "Kustomization",
    "Rendered",
    "Standing",
    "blob_id",
    "builds_on",
    "compile_variants",
    "disproofs",
    "first_difference",
    "input_folders",
    "input_paths",
    "is_below",
    "is_input",
    "is_kustomization",
    "is_lock",
    "is_plain_path",
    "is_same",
    "lock_text",
    "nondeterminism",
    "operations",
    "overlaps",
    "parse_lock",
    "parse_render",
    "read_kustomization",
    "read_rendered",
    "resolved",
    "round_trip",
    "staleness",
]
