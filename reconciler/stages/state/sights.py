"""Health probes of a Rollout's copies in a cluster, from the state of the fleet.

Source: ADR 18; `stages.state`: copies that are not kept are Synced and Healthy.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject
from reconciler.stages.rollouts import Copy
from reconciler.stages.state.tables import ClusterState
from reconciler.stages.state.values import HealthWord, Sync


def copies_of(state: ClusterState, identities: Collection[Identity]) -> list[Copy]:
    """The copies of a cluster that are not both Synced and Healthy; of all others there is nothing to say."""
    found = []
    nobody: JsonObject = {}
    for identity, seen in state.kept.items():
        if identity in identities:
            is_in_step = seen.sync.sync is Sync.SYNCED
            why = seen.health.why if is_in_step else seen.sync.why
            is_healthy = seen.health.word is HealthWord.HEALTHY
            found.append(Copy(identity, is_in_step, is_healthy, why, nobody))
    return found
