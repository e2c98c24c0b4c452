"""State of each copy: sync, health and reason."""

from reconciler.state.health import (
    EVICTED,
    TROUBLES,
    beside_pods,
    copies_of,
    health_of,
    says_more,
    why_waiting,
    with_message,
)
from reconciler.state.judge import (
    Condition,
    ConditionEnd,
    degraded,
    frozen,
    held_for_person,
    is_evaluated,
    refused,
    state_of,
)
from reconciler.state.state_tables import ClusterState, FleetState, RevisionStep, StateChange, StateTables, step_of
from reconciler.state.state_values import (
    HEALTHY,
    MISSING,
    NOMINAL,
    THE_SERVER,
    Degraded,
    Failed,
    Fought,
    Frozen,
    HealthState,
    HealthWord,
    Healthy,
    Held,
    Lag,
    Missing,
    NotKnown,
    ObjectState,
    Pending,
    Progressing,
    Refused,
    StateFacts,
    Sync,
    Synced,
    SyncState,
    UnknownHealth,
)
