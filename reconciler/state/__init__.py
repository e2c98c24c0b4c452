"""State of each copy: sync, health and reason."""

from reconciler.state.conditions import (
    Condition,
    ConditionEnd,
    Holds,
    Verdict,
    degraded,
    frozen,
    held_for_person,
    is_evaluated,
    refused,
)
from reconciler.state.health import (
    TROUBLES,
    beside_pods,
    copies_of,
    health_of,
    says_more,
    why_unschedulable,
    why_waiting,
)
from reconciler.state.judge import state_of
from reconciler.state.state_tables import ClusterState, FleetState, RevisionStep, StateChange, StateTables, step_of
from reconciler.state.state_values import (
    HEALTHY,
    MISSING,
    NOMINAL,
    SYNCED,
    THE_SERVER,
    Copy,
    Degraded,
    Failed,
    Fought,
    Frozen,
    HealthState,
    HealthWord,
    Healthy,
    Held,
    Lag,
    Left,
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
    by_copy,
)
