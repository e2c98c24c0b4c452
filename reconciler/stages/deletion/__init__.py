"""The treatment of copies that are no longer desired, and the changes that need a confirmation."""

from reconciler.stages.deletion.deletion import Fate
from reconciler.stages.deletion.guard import (
    HELD_BY_GUARD,
    guard,
    is_held_by_guard,
    is_held_by_number,
    losses_after,
    losses_of,
)
from reconciler.stages.deletion.leaving import lose
from reconciler.stages.deletion.losses import INCOMPLETE, Decided, lost_copies
from reconciler.stages.deletion.purge import (
    Scheduled,
    effective_after_failure,
    failures_of,
    is_grace_over,
    run_kept_by_policy,
    scheduled,
)

__all__ = [
    "HELD_BY_GUARD",
    "INCOMPLETE",
    "Decided",
    "Fate",
    "Scheduled",
    "effective_after_failure",
    "failures_of",
    "guard",
    "is_grace_over",
    "is_held_by_guard",
    "is_held_by_number",
    "lose",
    "losses_after",
    "losses_of",
    "lost_copies",
    "run_kept_by_policy",
    "scheduled",
]
