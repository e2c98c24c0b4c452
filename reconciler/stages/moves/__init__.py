"""When a copy may go since others serve, and which moves make no progress."""

from reconciler.stages.moves.moves import (
    Effective,
    Replicas,
    Run,
    Serving,
    effective,
    gains,
    pinned,
    run_of,
    still_established,
)
from reconciler.stages.moves.rest import is_at_rest_beside
from reconciler.stages.moves.stalled import (
    MOVE_CODES,
    MOVE_STALLED,
    PATIENCE_S,
    is_timer,
    is_waiting,
    stalled,
    timer_of,
    waiting_times,
)

__all__ = [
    "MOVE_CODES",
    "MOVE_STALLED",
    "PATIENCE_S",
    "Effective",
    "Replicas",
    "Run",
    "Serving",
    "effective",
    "gains",
    "is_at_rest_beside",
    "is_timer",
    "is_waiting",
    "pinned",
    "run_of",
    "stalled",
    "still_established",
    "timer_of",
    "waiting_times",
]
