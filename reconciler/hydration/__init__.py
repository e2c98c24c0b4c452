"""Render documents, lock files and compiled variants of helm and kustomize output. Runs nothing."""

from reconciler.hydration.charts import merged_values, missing_dependencies, served_apis
from reconciler.hydration.kustomization import (
    HELM_OUTPUT,
    KustomizeChart,
    StorePathKind,
    builds_on,
    chart_homes,
    is_kustomization,
    named_files,
    read_kustomization,
    resolved,
    round_trip,
)
from reconciler.hydration.lock import (
    KUSTOMIZATIONS,
    blob_id,
    input_folders,
    input_paths,
    is_input,
    is_lock,
    lock_text,
    parse_lock,
    split_file,
    staleness,
)
from reconciler.hydration.objects import Bodies, is_in_clear, nondeterminism, operations, read_rendered
from reconciler.hydration.render_document import (
    RENDER_SHAPE,
    inputs_named,
    is_below,
    is_plain_path,
    kustomize_folders,
    parse_render,
    problem_of,
)
from reconciler.hydration.variants import compile_variants, disproofs, encrypted_objects, overlaps
from reconciler.hydration.version_range import (
    ImageVersion,
    image_versions,
    is_in_range,
    is_newer,
    is_range,
    newest,
    with_newer,
)
