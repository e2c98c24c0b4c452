"""Events of history that a round adds: placements with their reason, revisions in step, and episodes.

The reason of a placement is not always the last commit: an evicted copy has left for a person, a moved one for a tick.
An episode (an unreachable cluster, a conflict, a broken store) has one beginning and one end, restarts or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding, Constraint, TargetCluster, Tick
from reconciler.api.ledger import ENDS, Event, EventKind, EvictionRecord
from reconciler.api.plan import Plan
from reconciler.api.refs import Copy, Identity
from reconciler.controller.round.writes import Behind, behind_event
from reconciler.errors import ANOTHER_CLUSTER
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import age_s
from reconciler.report.json_parts import placement_part, reasons_part
from reconciler.report.mask import scrub_text
from reconciler.state import Condition, ConditionEnd, FleetState, Frozen, Held, RevisionStep, is_news

Holding = Mapping[str, Mapping[str, Any]]
"""Present episodes: subject to the data of its event, with its `why`."""

STORE: Final = "store"
"""The subject of events about the store as a whole."""
_GROWING: Final = frozenset({EventKind.DEGRADED, EventKind.HELD, EventKind.FROZEN, EventKind.CLUSTER_AWAY})
"""Episodes with further events while they last; these have the start time, too."""
_END_OF: Final = {begin: end for end, begin in ENDS.items()}


class Episodes:
    """Those that have begun and are not over. All of it belongs to the task that writes the journal."""

    def __init__(self, journal: Journal, kinds: Iterable[EventKind]) -> None:
        """Continue the journal's unfinished episodes. `kinds`: of beginnings."""
        self._journal = journal
        self._open: dict[EventKind, dict[str, Event]] = {begin: {} for begin in kinds}
        for event in journal.lasting(self._open):
            self._open[EventKind(event.kind)][event.subject] = event

    def open(self, kind: EventKind) -> Mapping[str, Event]:
        """Return unfinished episodes, by subject."""
        return self._open[kind]

    def update(
        self, kind: EventKind, holding: Holding, now: str, *, over: Iterable[str], gone: Collection[str] = ()
    ) -> tuple[Event, ...]:
        """Record beginnings, and ends of episodes that are `over`: others go on. Return the events of both.

        `gone`: those that are over since their object is no longer placed there.

        A broken store with another error begins again: each error is worth an event. So does a degraded object with
        another reason, since the first one is seldom the most useful, and a hold that has grown.
        """
        known = self._open[kind]
        ended = known.keys() & set(over) - holding.keys()
        events = []
        for subject in sorted(ended):
            begun = known.pop(subject)
            cause = {key: begun.data[key] for key in ("why", "who") if key in begun.data}
            cause |= {"why": f"it is no longer placed there: {cause['why']}"} if subject in gone else {}
            events.append(self._event(_END_OF[kind], subject, now, {**cause, "since": begun_at(begun)}))
        for subject, raw in sorted(holding.items()):
            data = {key: scrub_text(value) if isinstance(value, str) else value for key, value in raw.items()}
            before = known.get(subject)
            if before is not None and kind in _GROWING:
                data["since"] = begun_at(before)
            if before is None or _is_news(kind, before, data):
                known[subject] = self._event(kind, subject, now, data)
                events.append(known[subject])
            elif kind is EventKind.HELD:  # Fewer are held now, or its remedy names another digest.
                known[subject] = replace(before, data=data)
        if events:
            self._journal.record_events(events)
        return tuple(events)

    def forget(self, kind: EventKind, subjects: Iterable[str]) -> None:
        """Drop episodes that are not among these: they neither go on nor end."""
        self._open[kind] = {subject: self._open[kind][subject] for subject in set(subjects) & self._open[kind].keys()}

    def _event(self, kind: EventKind, subject: str, now: str, data: Mapping[str, Any]) -> Event:
        return Event(round=self._journal.complete_rounds(), time=now, kind=kind, subject=subject, data=data)


def begun_at(event: Event) -> str:
    """Return the start of an episode, from its last event."""
    return str(event.data.get("since") or event.time)


def _is_news(kind: EventKind, before: Event, data: Mapping[str, Any]) -> bool:
    known, why = str(before.data.get("why")), str(data.get("why"))
    if kind is EventKind.DEGRADED:
        return is_news(known, why)
    if kind is EventKind.HELD:
        return int(data["held"]) > int(before.data.get("held", 0))
    if kind is EventKind.CLUSTER_AWAY:  # Whoever waits for the one that was there would wait in vain.
        return ANOTHER_CLUSTER in why and ANOTHER_CLUSTER not in known
    return before.subject == STORE and known != why


FLAPS_MAX: Final = 3
"""Limit of reports within the window that a condition began, and that it is over."""
OBJECTS_MAX: Final = 20
"""So many objects of a hold or a freeze are named; `status` and `diff` list all."""
_FILES_MAX: Final = 5

State = TypeVar("State")


def ongoing(
    condition: Condition[State], state: FleetState, known: Mapping[Copy, State], changed: Collection[Copy]
) -> dict[Copy, State]:
    """Return the copies in a condition, of known and changed ones. One that was not evaluated keeps its known state."""
    now: dict[Copy, State] = {}
    for copy in sorted({*known, *changed}):
        verdict = condition(state.facts, copy, state.last_state(*copy))
        if state.facts.is_left(copy[0]):
            continue  # It is nobody's concern any more.
        if not isinstance(verdict, ConditionEnd):
            now[copy] = verdict
        elif verdict is ConditionEnd.NOT_EVALUATED and copy in known:
            now[copy] = known[copy]
    return now


def hold_of(held: Mapping[Identity, Held], since: Mapping[Identity, str]) -> dict[str, Any]:
    """Return a hold of a cluster for history. `since`: the revision with which each began; shown where they differ."""
    names = sorted(held, key=str)
    revisions = {str(name): since[name] for name in names[:OBJECTS_MAX]}
    return {
        "why": held[names[0]].why,
        "by": ", ".join(sorted({str(one.by) for one in held.values()})),
        "held": len(held),
        "objects": [str(name) for name in names[:OBJECTS_MAX]],
        **({"revisions": revisions} if len(set(revisions.values())) > 1 else {}),
    }


def freeze(frozen: Mapping[Copy, Frozen]) -> Mapping[str, Any]:
    """Return the frozen objects of the fleet for history: files, number of copies, clusters, the first objects."""
    files = [by for by, _ in Counter(one.by for one in frozen.values()).most_common(_FILES_MAX)]
    return {
        "why": "; ".join(sorted(files)),
        "frozen": len(frozen),
        "clusters": sorted({cluster for cluster, _ in frozen}),
        "objects": sorted({str(identity) for _, identity in frozen})[:OBJECTS_MAX],
    }


_KEPT_AWAY: Final = (EventKind.EVICTED, EventKind.READMITTED, EventKind.CONSTRAINED, EventKind.FREED, EventKind.CREATED)
"""Events that keep a copy out of a cluster, let it come back, or report that."""
_COMMIT: Final[Behind] = {}
_CLUSTERS: Final[Behind] = {"who": "clusters", "why": "what the clusters have room for, or are like, is another now"}


class PlacementReasons(Struct, frozen=True, kw_only=True):
    """The reasons of placements. `is_advanced`: of another revision. `ticked`: constraints that took a cluster."""

    journal: Journal
    now: str
    is_advanced: bool
    ticked: Mapping[tuple[Identity, str], Constraint] = field(default_factory=dict)
    evictions: Sequence[EvictionRecord] = ()
    bindings: Mapping[Identity, Binding] = field(default_factory=dict)

    def of(self, identity: Identity, before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> Behind | None:
        """Return the reason of a move; None: it follows something else, or the clusters' state."""
        for cluster in _lost(before, after):
            constraint = self.ticked.get((identity, cluster))
            if constraint is not None:
                return self._behind(constraint)
        # What left the store by an earlier commit goes when its Rollout is through.
        if self.is_advanced or not before or (not after and identity not in self.bindings):
            return _COMMIT
        for cluster in _lost(after, before):
            order = self._order(identity, cluster)
            if order is not None and order.until and order.until <= self.now:
                return {"who": order.who or "a person", "why": f"its eviction from {cluster} has ended"}
            last = self._newest(identity, cluster, _KEPT_AWAY)
            if last is not None and last.kind in (EventKind.READMITTED, EventKind.FREED):
                return behind_event(last)
        return None

    def followed(self, identity: Identity, placed: Iterable[Identity]) -> Iterable[Identity]:
        """Return the owners of a follower, as far as they were placed again too."""
        if identity[:2] == ("", "Namespace"):
            return sorted(each for each in placed if each.namespace == identity.name)
        return self.bindings[identity].owners if identity in self.bindings else ()

    def _behind(self, constraint: Constraint) -> Behind:
        if constraint.tick is not Tick.EVICTION:
            return {"who": str(constraint.tick), "why": constraint.reason}
        order = self._order(constraint.identity, constraint.cluster)
        if order is not None:
            return {"who": order.who or "a person", "why": constraint.reason}
        # The order is gone already: it was undone during the round.
        evicted = self._newest(constraint.identity, constraint.cluster, (EventKind.EVICTED,))
        return {"who": (str(evicted.data.get("who", "")) if evicted else "") or "a person", "why": constraint.reason}

    def _newest(self, identity: Identity, cluster: str, kinds: tuple[EventKind, ...]) -> Event | None:
        newest = self.journal.newest_events(EventFilter(subject=f"{identity} @ {cluster}", kinds=kinds), 1)
        return newest[0].event if newest else None

    def _order(self, identity: Identity, cluster: str) -> EvictionRecord | None:
        return next((one for one in self.evictions if (one.identity, one.cluster) == (identity, cluster)), None)


def _lost(before: Sequence[TargetCluster], after: Sequence[TargetCluster]) -> list[str]:
    now = dict(after)
    return [name for name, replicas in before if name not in now or (replicas or 0) > (now[name] or 0)]


def placed_events(
    number: int, time: str, plan: Plan, recorded: Collection[Identity], origins: PlacementReasons
) -> Iterator[Event]:
    """Yield the new placements: recorded ones that differ from before."""
    placed = [placement for placement in plan.placements if placement.identity in recorded]
    behind = {each.identity: origins.of(each.identity, each.before, each.after) for each in placed}
    for placement in placed:
        origin = behind[placement.identity]
        if origin is None:
            led = (behind.get(owner) for owner in origins.followed(placement.identity, behind))
            origin = next((one for one in led if one is not None), _CLUSTERS)
        yield Event(
            round=number,
            time=time,
            kind=EventKind.PLACED,
            subject=str(placement.identity),
            data={
                "revision": plan.head,
                "before": placement_part(placement.before),
                "after": placement_part(placement.after),
                "reasons": reasons_part(placement.reasons),
                **origin,
            },
        )


_KINDS: Final = (str(EventKind.ADVANCED), str(EventKind.IN_STEP))


class Steps:
    """Belongs to the task that writes the journal, with the reports from before a restart."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._revision = ""
        self.is_reported = False
        """True if everything was in step once since the revision became active."""
        self.active_since = ""
        """Time at which the revision became active, as RFC 3339; empty: unknown."""
        self.fresh_s: float | None = None
        """Duration until all was in step, if the last round determined it; else None."""

    def record_in_step(self, step: RevisionStep, now: str) -> tuple[Event, ...]:
        """Record that everything is in step, the first time that it is; the event of that."""
        self.fresh_s = None
        if step.revision != self._revision:
            newest = self._journal.newest_events(EventFilter(kinds=_KINDS), 2)
            events = [each.event for each in newest if each.event.data.get("revision") == step.revision]
            self._revision = step.revision
            self.is_reported = bool(events) and events[0] is newest[0].event and events[0].kind == EventKind.IN_STEP
            self.active_since = next((event.time for event in events if event.kind == EventKind.ADVANCED), "")
        if self.is_reported or not step.is_complete:
            return ()
        self.is_reported = True
        took_s = age_s(self.active_since, now) if self.active_since else None
        data = {"revision": step.revision, "clusters": step.clusters}
        data |= {"since": self.active_since, "seconds": round(took_s)} if took_s is not None else {}
        self.fresh_s = took_s
        return (self._journal.record_event(EventKind.IN_STEP, STORE, data, now),)
