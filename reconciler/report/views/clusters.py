"""One cluster with its objects, and the heads of all clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model.ledger import Event
from reconciler.model.refs import Identity
from reconciler.report.history_text import history_entry
from reconciler.report.status.state_document import LEFT_WHY
from reconciler.report.views.needs import needs_of
from reconciler.report.views.questions import ROWS_MAX
from reconciler.report.views.rollouts import in_force_in
from reconciler.report.views.shapes import CapacityPart, ClusterView, PlacedObject
from reconciler.report.views.sight import Sight, copy_part, rank_of, words_for_history
from reconciler.report.views.timers import timers_of
from reconciler.stages.state import ClusterState

_RESOURCES: Final = (("cpu", 1000.0), ("memory", 1.0), ("ephemeral-storage", 1.0), ("pods", 1.0))
"""The shown resources of a cluster, with their number of units in a base unit."""


def cluster_view(sight: Sight, name: str, offset: int = 0, events: Sequence[Event] = ()) -> ClusterView | None:
    """Return the cluster; None: the name is unknown. `events`: the newest about it."""
    found = sight.clusters.get(name)
    if found is None:
        return None
    declared = sight.facts.decision.fleet.clusters.get(name)
    identities = _worst_first(sight, found)
    return ClusterView(
        name=name,
        is_up=found.why_away is None and not found.is_left,
        is_left=found.is_left,
        why=LEFT_WHY if found.is_left else sight.text(found.why_away or ""),
        where=str(declared.source) if declared is not None and declared.source.path else None,
        server=sight.text(sight.servers[name]) if name in sight.servers else None,
        last_contact=found.last_contact or None,
        labels={key: sight.text(value) for key, value in (declared.labels.items() if declared is not None else ())},
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                     for taint in (declared.taints if declared is not None else ())),
        counts={str(lag): count for lag, count in found.syncs.items()},
        health={str(word): count for word, count in found.healths.items()},
        capacity=tuple(_capacity(sight, name)),
        suspended=_suspended(sight, name),
        objects=tuple(_placed(sight, name, identities[offset : offset + ROWS_MAX])),
        total=len(identities),
        offset=offset,
        needs=needs_of(sight, cluster=name).listed,
        timers=timers_of(sight, cluster=name),
        history=tuple(history_entry(event, words_for_history(sight)) for event in events),
        in_force=in_force_in(sight, name),
    )  # fmt: skip


def _worst_first(sight: Sight, found: ClusterState) -> list[Identity]:
    kept = sorted(found.kept, key=lambda identity: (rank_of(found.kept[identity]), identity))
    if found.why_away is not None or found.is_left:
        return kept
    manifests = sight.facts.manifests.get(found.name, {})
    return kept + sorted(identity for identity in manifests if identity not in found.kept)


def _placed(sight: Sight, name: str, identities: Sequence[Identity]) -> Iterator[PlacedObject]:
    for identity in identities:
        state = sight.state(name, identity)
        if state is not None:
            yield PlacedObject(resource=sight.resource(name, identity), copy=copy_part(sight, name, identity, state))


def _suspended(sight: Sight, name: str) -> str | None:
    for found in sight.noted.suspensions:
        if found.scope in ("fleet", f"cluster {name}"):
            why = f": {found.reason}" if found.reason else ""
            return sight.text(f"{found.scope} by {found.who or 'a person'}{why}")
    return None


def _capacity(sight: Sight, name: str) -> Iterator[CapacityPart]:
    seen = sight.observations.clusters.get(name)
    nodes = seen.nodes if seen is not None and seen.reachable else None
    for resource, divisor in _RESOURCES:
        if nodes is None:
            yield CapacityPart(name=resource)
            continue
        total, used = (
            sum(getattr(node, part).get(resource, 0) for node in nodes) for part in ("allocatable", "requested")
        )
        yield CapacityPart(name=resource, allocatable=total / divisor, used=used / divisor)
