"""The changes of a round, in the order in which they are made."""

from reconciler.stages.plan.closed_windows import CLOSED, held_by_windows
from reconciler.stages.plan.cluster_problems import CLUSTER_NOT_READ, not_listed
from reconciler.stages.plan.job_shares import RUNS_ELSEWHERE
from reconciler.stages.plan.needed import Surroundings, after_owners
from reconciler.stages.plan.order import kept_waves, waves, waves_without
from reconciler.stages.plan.settle import Settled, settle

__all__ = [
    "CLOSED",
    "CLUSTER_NOT_READ",
    "RUNS_ELSEWHERE",
    "Settled",
    "Surroundings",
    "after_owners",
    "held_by_windows",
    "kept_waves",
    "not_listed",
    "settle",
    "waves",
    "waves_without",
]
