"""The objects that are not as wanted, or do not fare well, as rows: the worst first, and not without end."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Final

from reconciler.model.refs import Identity
from reconciler.model.tree import Json
from reconciler.report.json_parts import resource_part
from reconciler.stages.state import ClusterState, FleetState, HealthWord, HeldBy, Lag, ObjectState

ROWS_MAX: Final = 1000
"""So many are listed; a fleet that comes up has a hundred thousand that wait for their turn."""

_SYNCS: Final = (
    *(Lag.FAILED, Lag.REFUSED, Lag.FOUGHT, Lag.FROZEN, Lag.HELD, Lag.UNKNOWN, Lag.LEFT, Lag.PENDING, Lag.SYNCED),
)
_HEALTHS: Final = (
    HealthWord.DEGRADED,
    HealthWord.MISSING,
    HealthWord.UNKNOWN,
    HealthWord.PROGRESSING,
    HealthWord.HEALTHY,
)
_SYNC_RANK: Final = {lag: rank for rank, lag in enumerate(_SYNCS)}
_HEALTH_RANK: Final = {word: rank for rank, word in enumerate(_HEALTHS)}

_Row = tuple[int, int, Identity, str, ObjectState]


class Troubles:
    """The troubled copies of a fleet. Copies in an unreachable cluster are not listed: its own row says all."""

    def __init__(self, state: FleetState, scrubbed: Callable[[str], str]) -> None:
        """`scrubbed` redacts messages of API servers."""
        self._state = state
        self._scrubbed = scrubbed
        self._clusters = [found for found in state.clusters.values() if found.why_away is None]
        self.total = sum(len(found.kept) for found in self._clusters)

    def rows(self) -> list[Json]:
        """`[{cluster, resource, sync, state, by, why, health, healthWhy}]`, the worst first."""
        worst = heapq.nsmallest(ROWS_MAX, self._ranked(), key=lambda row: row[:4])
        return [self._row(cluster, identity, found) for _, _, identity, cluster, found in worst]

    def _ranked(self) -> Iterator[_Row]:
        for cluster in self._clusters:
            yield from _of_cluster(cluster)

    def _row(self, cluster: str, identity: Identity, found: ObjectState) -> dict[str, Any]:
        gvk = self._state.gvk(cluster, identity)
        by = getattr(found.sync, "by", None)
        return {
            "cluster": cluster,
            "resource": resource_part(gvk, identity) if gvk is not None else _without_version(identity),
            "sync": str(found.sync.sync),
            "state": str(found.sync.lag),
            "by": str(by) if isinstance(by, HeldBy) else None,
            "why": self._scrubbed(found.sync.why),
            "health": str(found.health.word),
            "healthWhy": self._scrubbed(found.health.why),
        }


def _of_cluster(cluster: ClusterState) -> Iterator[_Row]:
    for identity, found in cluster.kept.items():
        yield _SYNC_RANK[found.sync.lag], _HEALTH_RANK[found.health.word], identity, cluster.name, found


def _without_version(identity: Identity) -> dict[str, str]:
    return {
        "apiVersion": identity.group,
        "kind": identity.kind,
        "namespace": identity.namespace,
        "name": identity.name,
    }
