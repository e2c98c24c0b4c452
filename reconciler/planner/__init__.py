"""Plans: ordered changes, deletions, guards, and comparisons of two revisions."""

from reconciler.planner.causes import (
    CLUSTER_IN_NO_POLICY,
    CLUSTER_NOT_READ,
    RIGHT_MISSING,
    RUNS_ELSEWHERE,
    not_listed,
    urls_of_two_hosts,
)
from reconciler.planner.deletion import INCOMPLETE, NOT_DELETED, DeletionAction
from reconciler.planner.diff_all import Round
from reconciler.planner.guard import (
    former_windows,
    guard,
    guards_in_force,
    is_held_by_guard,
    is_held_by_number,
    losses_after,
    losses_of,
    with_former_suspensions,
)
from reconciler.planner.order import kept_waves, waves, waves_without
from reconciler.planner.plan_moves import KEPT_BY_POLICY, effective_after_failure, failures_of
from reconciler.planner.plan_round import (
    compare_revisions,
    copies_in,
    plan_round,
    render_one,
    render_schedule,
    restrained,
)
from reconciler.planner.revisions import previous_of, with_progress, with_standing
