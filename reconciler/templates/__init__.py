"""Facts of one template: validity, demand, references, images."""

from reconciler.templates.facts import (
    ImageFault,
    check_facts,
    demand_of,
    facts_of,
    images_of,
    is_built_in,
    made_of,
    malformed_images,
    override_image,
    parse_image,
    references_of,
    replaces_registry,
    scale_target_of,
)
from reconciler.templates.hooks import (
    HOOK,
    HOOK_DELETE,
    HOOK_FAILURE,
    HOOK_WEIGHT,
    ONCE_HEALTHY,
    RUNS_ONCE,
    THE_REST,
    WAVE,
    HookEnd,
    HookTime,
    Turn,
    has_turn,
    hook_of,
    is_hook,
    is_run_of_hook,
    package_of,
    turn_of,
)
from reconciler.templates.metadata import DOCUMENTED_ANNOTATIONS, RESERVED_PREFIX, may_be_refused
from reconciler.templates.rules import has_rules_of_its_own, identities_in, judge, read_template, without_namespace
from reconciler.templates.workloads import claims_of, replicas_moved, why_confirmed, why_share_confirmed
