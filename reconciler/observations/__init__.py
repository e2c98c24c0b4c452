"""Observations of the clusters, the availability of copies, and moves that wait for it."""

from reconciler.observations.availability import (
    Availability,
    Available,
    CopyAvailability,
    NotAvailable,
    UnknownAvailability,
    UnknownReason,
    availability_of,
    last_availability,
)
from reconciler.observations.instants import (
    age_s,
    api_moment,
    event_moment,
    in_force,
    instant,
    is_in_force,
    later,
    moment_of,
    wait_s,
)
from reconciler.observations.observations_table import dump_observations, parse_observations
from reconciler.observations.waiting_moves import (
    MOVE_STALLED,
    PATIENCE_S,
    ActivePlacement,
    CopyAtRest,
    JobProgress,
    RecordedMove,
    Replicas,
    effective,
    gains,
    has_succeeded,
    is_at_rest_beside,
    is_timer,
    is_waiting,
    memory_of,
    pinned,
    run_of,
    stalled,
    timer_of,
    waiting_times,
    with_rest,
)
