"""New placements as events of history, with the person or reason behind them.

That is not always the last committer: an evicted copy has left for a person, one that moved for a tick.

Since when a revision is in force, and when everything was in step with it: once for each time it came into force.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from reconciler.api.binding import Constraint, TargetCluster, Tick
from reconciler.api.ledger import Event, EventKind, EvictionRecord
from reconciler.api.plan import Plan
from reconciler.api.refs import Identity
from reconciler.controller.round.episodes import STORE
from reconciler.controller.round.writes import Behind
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import age_s
from reconciler.report.json_parts import placement_part, reasons_part
from reconciler.state import RevisionStep

_COMMIT: Final[Behind] = {}
_CLUSTERS: Final[Behind] = {"who": "clusters", "why": "what the clusters have room for, or are like, is another now"}


class Origins(Struct, frozen=True, kw_only=True):
    """The reasons of placements. `is_advanced`: another revision became active with this round.

    `ticked`: constraints that took a cluster. `owners`: the owners of a dependency. `ordered`: for a copy that may come
    back, the person who let it (None: nobody). `now`: the time of the round (RFC 3339).
    """

    now: str
    is_advanced: bool
    ticked: Mapping[tuple[Identity, str], Constraint] = field(default_factory=dict)
    evictions: Sequence[EvictionRecord] = ()
    owners: Callable[[Identity], Sequence[Identity]] = lambda identity: ()
    freed: Callable[[Identity, str], Behind | None] = lambda identity, cluster: None
    evicted_by: Callable[[Identity, str], str] = lambda identity, cluster: ""
    """The person of the last eviction, if the order itself is gone already: it was undone during the round."""

    def of(self, identity: Identity, before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> Behind | None:
        """Return the reason of a move; None: it follows something else, or the clusters' state."""
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
    """Return the owners of a follower, as far as they were placed anew too."""
    if identity[:2] == ("", "Namespace"):
        return sorted(each for each in placed if each.namespace == identity.name)
    return origins.owners(identity)


def _lost(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> list[str]:
    """Return the clusters with fewer replicas than before."""
    now = dict(after)
    return [name for name, replicas in before if name not in now or (replicas or 0) > (now[name] or 0)]


def placed_events(
    number: int, time: str, plan: Plan, recorded: Collection[Identity], origins: Origins
) -> Iterator[Event]:
    """Yield the new placements: recorded ones that differ from before."""
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


_KINDS: Final = (str(EventKind.ADVANCED), str(EventKind.IN_STEP))


class Steps:
    """Belongs to the task that writes the journal, with the reports from before a restart."""

    def __init__(self, journal: Journal) -> None:
        """Nothing is looked up yet."""
        self._journal = journal
        self._revision = ""
        self._is_told = False
        self.seen_at = ""
        """Time at which the revision became active, as RFC 3339; empty: unknown."""
        self.fresh_s: float | None = None
        """Duration until all was in step, if the last round determined it; else None."""

    @property
    def is_told(self) -> bool:
        """Return whether everything was in step once since the revision became active."""
        return self._is_told

    def take_in(self, step: RevisionStep, now: str) -> tuple[Event, ...]:
        """Record that everything is in step, the first time that it is; the event of that."""
        self.fresh_s = None
        if step.revision != self._revision:
            self._begin(step.revision)
        if self._is_told or not step.is_complete:
            return ()
        self._is_told = True
        took_s = age_s(self.seen_at, now) if self.seen_at else None
        data = {"revision": step.revision, "clusters": step.clusters}
        data |= {"since": self.seen_at, "seconds": round(took_s)} if took_s is not None else {}
        event = Event(
            round=self._journal.complete_rounds(), time=now, kind=EventKind.IN_STEP, subject=STORE, data=data
        )  # fmt: skip
        self._journal.record_events([event])
        self.fresh_s = took_s
        return (event,)

    def _begin(self, revision: str) -> None:
        newest = self._journal.newest_events(EventFilter(kinds=_KINDS), 2)
        told = [found.event for found in newest if found.event.data.get("revision") == revision]
        self._revision = revision
        self._is_told = bool(told) and told[0] is newest[0].event and told[0].kind == EventKind.IN_STEP
        self.seen_at = next((event.time for event in told if event.kind == EventKind.ADVANCED), "")
