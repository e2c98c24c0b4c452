"""The changes of a round, in the order in which they are made."""

from reconciler.stages.plan.closed_windows import CLOSED, held_by_windows
from reconciler.stages.plan.cluster_problems import CLUSTER_NOT_READ, not_listed
from reconciler.stages.plan.diff_all import PlanResult, diff_all
from reconciler.stages.plan.job_shares import RUNS_ELSEWHERE
from reconciler.stages.plan.needed import after_owners
from reconciler.stages.plan.order import kept_waves, waves, waves_without

__all__ = [
    "CLOSED",
    "CLUSTER_NOT_READ",
    "RUNS_ELSEWHERE",
    "PlanResult",
    "after_owners",
    "diff_all",
    "held_by_windows",
    "kept_waves",
    "not_listed",
    "waves",
    "waves_without",
]
