"""Plans: ordered changes, deletions, guards, and comparisons of two revisions."""

from reconciler.planner.causes import CLUSTER_NOT_READ, RUNS_ELSEWHERE, not_listed
from reconciler.planner.deletion import INCOMPLETE, Decided, DeletionAction, lose, lost_copies
from reconciler.planner.deletion_order import after_owners
from reconciler.planner.diff_all import PlanResult, diff_all
from reconciler.planner.guard import HELD_BY_GUARD, guard, is_held_by_guard, is_held_by_number, losses_after, losses_of
from reconciler.planner.order import CLOSED, held_by_windows, kept_waves, waves, waves_without
from reconciler.planner.plan_round import Round, compare_revisions, copies_in, plan_round, render_decision, render_one
from reconciler.planner.preview import placement_changes, with_overridden
from reconciler.planner.purge import (
    Scheduled,
    effective_after_failure,
    failures_of,
    is_grace_over,
    run_kept_by_policy,
    scheduled,
)
from reconciler.planner.revisions import (
    named_alike,
    passage_between,
    previous_of,
    with_progress,
    with_stages,
    with_standing,
)
from reconciler.planner.unjudged import unjudged
from reconciler.planner.written import written_by, written_in

__all__ = [
    "CLOSED",
    "CLUSTER_NOT_READ",
    "HELD_BY_GUARD",
    "INCOMPLETE",
    "RUNS_ELSEWHERE",
    "Decided",
    "DeletionAction",
    "PlanResult",
    "Round",
    "Scheduled",
    "after_owners",
    "compare_revisions",
    "copies_in",
    "diff_all",
    "effective_after_failure",
    "failures_of",
    "guard",
    "held_by_windows",
    "is_grace_over",
    "is_held_by_guard",
    "is_held_by_number",
    "kept_waves",
    "lose",
    "losses_after",
    "losses_of",
    "lost_copies",
    "named_alike",
    "not_listed",
    "passage_between",
    "placement_changes",
    "plan_round",
    "previous_of",
    "render_decision",
    "render_one",
    "run_kept_by_policy",
    "scheduled",
    "unjudged",
    "waves",
    "waves_without",
    "with_overridden",
    "with_progress",
    "with_stages",
    "with_standing",
    "written_by",
    "written_in",
]
