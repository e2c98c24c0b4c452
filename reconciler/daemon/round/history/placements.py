"""What was placed anew, as events of history, with who is behind it.

That is not always who committed last: a copy that was evicted has left for a person, one that moved for a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from reconciler.daemon.round.history.writes import Behind
from reconciler.model.binding import Constraint, TargetCluster, Tick
from reconciler.model.ledger import Event, EventKind, EvictionRecord
from reconciler.model.plan import Plan
from reconciler.model.refs import Identity
from reconciler.report.json_parts import placement_part, reasons_part

_COMMIT: Final[Behind] = {}
_CLUSTERS: Final[Behind] = {"who": "clusters", "why": "what the clusters have room for, or are like, is another now"}


class Origins(Struct, frozen=True, kw_only=True):
    """What placements rest on. `is_advanced`: another revision came into force with this round.

    `ticked`: what a constraint took from a placement. `owners`: what a dependency follows. `ordered`: for a copy that
    may come back, who let it (None: nobody). `now`: the time of the round (RFC 3339).
    """

    now: str
    is_advanced: bool
    ticked: Mapping[tuple[Identity, str], Constraint] = field(default_factory=dict)
    evictions: Sequence[EvictionRecord] = ()
    owners: Callable[[Identity], Sequence[Identity]] = lambda identity: ()
    freed: Callable[[Identity, str], Behind | None] = lambda identity, cluster: None
    evicted_by: Callable[[Identity, str], str] = lambda identity, cluster: ""
    """Who evicted it last, where the order itself is gone already: it was taken back while the round went on."""

    def of(self, identity: Identity, before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> Behind | None:
        """Who moved it; None: it follows something else, or what the clusters are like."""
        for cluster in _lost(before, after):
            taken = self.ticked.get((identity, cluster))
            if taken is not None:
                return self._behind(taken)
        if self.is_advanced or not before:
            return _COMMIT
        for cluster in _lost(after, before):
            freed = self._ended(identity, cluster) or self.freed(identity, cluster)
            if freed is not None:
                return freed
        return None

    def _behind(self, taken: Constraint) -> Behind:
        if taken.tick is not Tick.EVICTION:
            return {"who": str(taken.tick), "why": taken.reason}
        order = self._order(taken.identity, taken.cluster)
        who = order.who if order is not None else self.evicted_by(taken.identity, taken.cluster)
        return {"who": who or "a person", "why": taken.reason}

    def _ended(self, identity: Identity, cluster: str) -> Behind | None:
        order = self._order(identity, cluster)
        if order is None or not order.until or order.until > self.now:
            return None
        return {"who": order.who or "a person", "why": f"its eviction from {cluster} has ended"}

    def _order(self, identity: Identity, cluster: str) -> EvictionRecord | None:
        return next((one for one in self.evictions if (one.identity, one.cluster) == (identity, cluster)), None)


def _followed(identity: Identity, origins: Origins, placed: Iterable[Identity]) -> Iterable[Identity]:
    """What something goes along with, as far as that was placed anew too."""
    if identity[:2] == ("", "Namespace"):
        return sorted(each for each in placed if each.namespace == identity.name)
    return origins.owners(identity)


def _lost(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> list[str]:
    """Where there is less than before."""
    now = dict(after)
    return [name for name, replicas in before if name not in now or (replicas or 0) > (now[name] or 0)]


def placed_events(
    number: int, time: str, plan: Plan, recorded: Collection[Identity], origins: Origins
) -> Iterator[Event]:
    """What was decided anew: placements that were recorded, and are not what they were."""
    placed = [found for found in plan.placements if found.identity in recorded]
    behind = {found.identity: origins.of(found.identity, found.before, found.after) for found in placed}
    for found in placed:
        origin = behind[found.identity]
        if origin is None:
            led = (behind.get(owner) for owner in _followed(found.identity, origins, behind))
            origin = next((one for one in led if one is not None), _CLUSTERS)
        yield Event(
            round=number,
            time=time,
            kind=EventKind.PLACED,
            subject=str(found.identity),
            data={
                "revision": plan.head,
                "before": placement_part(found.before),
                "after": placement_part(found.after),
                "reasons": reasons_part(found.reasons),
                **origin,
            },
        )
