"""Reported conditions: a round reports only news, since most rounds see the same as the one before.

All of it is made from the state of the fleet, as all reports are. Source: design#history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec import to_builtins

from reconciler.api.clusters import NotRead, Read
from reconciler.api.ledger import MADE, DriftOutcome, Event, EventKind
from reconciler.api.plan import Cause, Change, HeldBy
from reconciler.api.refs import Copy, Identity
from reconciler.controller import timing
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.episodes import (
    FLAPS_MAX,
    OBJECTS_MAX,
    STORE,
    Episodes,
    Holding,
    Steps,
    freeze,
    hold_of,
    ongoing,
)
from reconciler.controller.round.writes import drift_event, last_altered
from reconciler.incremental import by_key
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import age_s, later
from reconciler.report.mask import masker_of
from reconciler.report.status.remedies import behind
from reconciler.state import (
    Condition,
    ConditionEnd,
    Degraded,
    Failed,
    FleetState,
    Fought,
    Frozen,
    Held,
    Refused,
    StateChange,
    StateFacts,
    degraded,
    frozen,
    held_for_person,
    is_evaluated,
    refused,
    step_of,
)

_KINDS: Final = (
    *(EventKind.CLUSTER_AWAY, EventKind.KIND_UNREAD, EventKind.OBJECT_REFUSED, EventKind.FIGHT_DETECTED),
    *(EventKind.HELD, EventKind.FROZEN, EventKind.DEGRADED),
)
_State = TypeVar("_State", Refused, Degraded)


class ReportedConditions:
    """Belongs to the task that writes the journal. After a restart it continues from the journal.

    Nothing is reported as over without an evaluation (`state.judge`).
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._episodes = Episodes(journal, _KINDS)
        self._failures: dict[Copy, str] = {}
        self._read: Collection[str] = ()
        """The clusters that were read for the last recorded state."""
        self._drifts: dict[Copy, tuple[Change, Event]] = {}
        self._held: Mapping[Copy, Held] = {}
        self.held_by: dict[Copy, str] = {}
        """By copy that waits for a person the revision with which that began."""
        self._frozen: Mapping[Copy, Frozen] = {}
        self._begun_at: dict[tuple[EventKind, str], list[str]] = {}
        """The recent beginnings of conditions that may flap (RFC 3339)."""
        self._healed_at: dict[Copy, str] = {}
        """Recently healed copies: a fault soon afterwards belongs to the hand edit."""
        self._healed_now: set[Copy] = set()
        self._settling: dict[Copy, str] = {}
        """Objects degraded since their hand edit was reverted, with the time from which that is reported."""
        self.steps = Steps(journal)
        """Since when the revision in force is followed, and whether all was in step since."""

    def news(self, results: Sequence[ChangeResult]) -> tuple[ChangeResult, ...]:
        """The results without failures that history has already, from before a restart, too."""
        fresh = []
        for result in results:
            copy = result.change.copy
            if not result.error:
                self._failures.pop(copy, None)
                if result.change.cause is Cause.DRIFT:
                    self._healed_now.add(copy)
                fresh.append(result)
            else:
                known, masked = self._failures.get(copy), masker_of([result.change]).text(result.error)
                if known is None and self._last_failure(_subject(copy)) == masked:
                    known = result.error
                self._failures[copy] = result.error
                fresh += [result] if known != result.error else []
        return tuple(fresh)

    def _last_failure(self, subject: str) -> str:
        """Return the error of a copy, where a failure is the last thing that history has of it; else nothing."""
        wanted = EventFilter(subject=subject, kinds=(EventKind.FAILED, *MADE))
        last = next((recorded.event for recorded in self._journal.newest_events(wanted, 1)), None)
        return str(last.data.get("error") or "") if last is not None else ""

    def record_differences(
        self, state: FleetState, turns: Sequence[StateChange], now: str, fighting: Collection[str] | None = None
    ) -> tuple[Event, ...]:
        """Record differences; return begins and ends. `fighting`: conflicts that may go on; None: unknown yet."""
        facts = state.facts
        with self._journal.transaction():
            events = (
                *self._clusters(facts, now),
                *self._kinds(facts, now),
                *self._refused(state, turns, now),
                *self._held_or_frozen(state, turns, now),
                *self._degraded(state, turns, now),
                *self._fought(state, fighting, now),
                *self._not_computed(state, turns, now),
            )
            self._drifted(facts, now)
            return (*events, *self.steps.record_in_step(step_of(state), now))

    def continuing(self, news: Collection[Event], fights: Collection[Copy]) -> tuple[Event, ...]:
        """Return unfinished episodes, without the new ones, and of conflicts those of `fights`: others rest."""
        every = chain.from_iterable(self._episodes.open(kind).values() for kind in _KINDS)
        return tuple(
            event
            for event in every
            if event not in news and (event.kind != EventKind.FIGHT_DETECTED or _copy_of(event) in fights)
        )

    def _clusters(self, facts: StateFacts, now: str) -> tuple[Event, ...]:
        kind, members = EventKind.CLUSTER_AWAY, facts.members
        for each in _KINDS:
            subjects = [one for one in self._episodes.open(each) if one == STORE or not facts.is_left(_cluster_of(one))]
            self._episodes.forget(each, subjects)
        away = {f"cluster {name}": {"why": one.why} for name, one in members.items() if isinstance(one, NotRead)}
        over = [f"cluster {name}" for name, one in members.items() if not isinstance(one, NotRead)]
        return self._damped(kind, away, now, over=over)

    def _kinds(self, facts: StateFacts, now: str) -> tuple[Event, ...]:
        """Kinds that cannot be read. Of a cluster that is away it is not known whether they can be again."""
        kind = EventKind.KIND_UNREAD
        unread = {
            f"{kind_fault.what.gvk.text} @ {name}": {"why": kind_fault.why, "code": str(kind_fault.cause)}
            for name, each in facts.unlisted.items()
            for kind_fault in each
        }
        over = [one for one in self._episodes.open(kind) if isinstance(facts.members.get(_cluster_of(one)), Read)]
        return self._damped(kind, unread, now, over=over)

    def _refused(self, state: FleetState, turns: Sequence[StateChange], now: str) -> tuple[Event, ...]:
        kind = EventKind.OBJECT_REFUSED
        holding = {
            _subject(copy): {"why": one.why, "code": one.code, **_behind(state, copy, one), **_group(copy)}
            for copy, one in _holding(refused, state, turns)
        }
        return self._episodes.update(kind, holding, now, over=self._over(kind, refused, state))

    def _degraded(self, state: FleetState, turns: Sequence[StateChange], now: str) -> tuple[Event, ...]:
        kind = EventKind.DEGRADED
        conditions = dict(_holding(degraded, state, turns))
        for copy in self._settling:
            verdict = degraded(state.facts, copy, state.last_state(*copy))
            if not isinstance(verdict, ConditionEnd):
                conditions[copy] = verdict
        # A copy that is healed again and again is spared no longer by that.
        new = dict.fromkeys(self._healed_now - self._healed_at.keys(), now)
        self._healed_at = {copy: at for copy, at in self._healed_at.items() if age_s(at, now) < timing.SETTLING_S} | new
        self._healed_now = set()
        known = self._episodes.open(kind)
        spared = [copy for copy in conditions if copy in self._healed_at and _subject(copy) not in known]
        self._settling = {copy: self._settling.get(copy, later(now, timing.SETTLING_S)) for copy in spared}
        holding = {
            _subject(copy): {"why": one.why, **_behind(state, copy, one), **_group(copy)}
            for copy, one in conditions.items()
            if copy not in self._settling
        }
        over, manifests = self._over(kind, degraded, state), state.facts.manifests
        copies = {one: _copy_of(known[one]) for one in over}
        gone = {one for one, (cluster, identity) in copies.items() if identity not in manifests.get(cluster, {})}
        return self._damped(kind, holding, now, over, gone)

    def _damped(
        self, kind: EventKind, holding: Holding, now: str, over: Collection[str], gone: Collection[str] = ()
    ) -> tuple[Event, ...]:
        """Update episodes; one that begins too often is not reported as over until the window is, or it is gone."""
        for subject in holding.keys() - self._episodes.open(kind).keys():
            self._begun_at.setdefault((kind, subject), []).append(now)
        lately = ((key, [at for at in ats if age_s(at, now) < timing.QUIET_S]) for key, ats in self._begun_at.items())
        self._begun_at = {key: ats for key, ats in lately if ats}
        steady = [one for one in over if one in gone or len(self._begun_at.get((kind, one), ())) < FLAPS_MAX]
        return self._episodes.update(kind, holding, now, over=steady, gone=gone)

    def due_at(self) -> str:
        """Return the time of the next report without a change (RFC 3339); empty: none."""
        return min(self._settling.values(), default="")

    def _over(self, kind: EventKind, condition: Condition[_State], state: FleetState) -> list[str]:
        return [
            subject
            for subject, event in self._episodes.open(kind).items()
            if condition(state.facts, copy := _copy_of(event), state.last_state(*copy)) is ConditionEnd.OVER
        ]

    def _held_or_frozen(self, state: FleetState, turns: Sequence[StateChange], now: str) -> tuple[Event, ...]:
        """Return events of holds for a person, by cluster; and of objects frozen by broken files, over the fleet."""
        changed = {(turn.cluster, turn.identity) for turn in turns}
        was, self._held = self._held, ongoing(held_for_person, state, self._held, changed)
        self._frozen = ongoing(frozen, state, self._frozen, changed)
        revision, known = state.facts.schedule.fleet.revision, {cluster for cluster, _ in was}
        self.held_by = {
            copy: self.held_by[copy]
            if copy in was and was[copy].by is one.by
            else self._began_with(copy, known, state.facts.left_with.get(copy[1], revision))
            for copy, one in self._held.items()
        }
        held = {}
        for cluster, there in by_key(self._held).items():
            # The first of each cluster speaks for all there.
            holds = {one: self._held[cluster, one] for one in there}
            hold = hold_of(holds, {one: self.held_by[cluster, one] for one in there})
            first = min(there, key=str)  # As in `hold_of`.
            held[f"cluster {cluster}"] = {**_behind(state, (cluster, first), holds[first]), **hold}
        over = [
            subject
            for subject, event in self._episodes.open(EventKind.HELD).items()
            if subject not in held and _is_evaluated_there(state, subject.removeprefix("cluster "), event)
        ]
        events = self._episodes.update(EventKind.HELD, held, now, over=over)
        still = {STORE: freeze(self._frozen)} if self._frozen else {}
        # After a start, frozen objects of an unreachable cluster are unknown.
        is_whole = state.facts.schedule.fleet.is_complete or all(not one.why_away for one in state.clusters.values())
        return (*events, *self._episodes.update(EventKind.FROZEN, still, now, over=(STORE,) if is_whole else ()))

    def _began_with(self, copy: Copy, known: Collection[str], revision: str) -> str:
        """Return what history has of a hold from before the start of this process; `revision` in a known cluster."""
        event = self._episodes.open(EventKind.HELD).get(f"cluster {copy[0]}") if copy[0] not in known else None
        named = event.data.get("objects", ()) if event is not None else ()
        is_named = len(named) == OBJECTS_MAX or str(copy[1]) in named
        if event is None or not is_named or str(self._held[copy].by) not in event.data.get("by", ""):
            return revision
        return str(event.data.get("revisions", {}).get(str(copy[1])) or event.data.get("revision") or revision)

    def _fought(self, state: FleetState, fighting: Collection[str] | None, now: str) -> tuple[Event, ...]:
        """Fights that began; and those that are over: nobody fights any more, and the copy was seen as it is wanted."""
        facts, kind = state.facts, EventKind.FIGHT_DETECTED
        holding = {
            _subject(copy): {"why": f"{conflict.changes} are undone again and again",
                             "until": conflict.until, "fields": list(conflict.fields),
                             **_behind(state, copy, conflict), "who": ", ".join(conflict.managers) or "somebody",
                             **_group(copy)}
            for copy, conflict in facts.fights.items()
        }  # fmt: skip
        over = [
            subject
            for subject, event in self._episodes.open(kind).items()
            if fighting is not None
            and subject not in fighting
            and is_evaluated(facts, copy := _copy_of(event), state.last_state(*copy))
        ]
        return self._episodes.update(kind, holding, now, over=over)

    def _not_computed(self, state: FleetState, turns: Sequence[StateChange], now: str) -> tuple[Event, ...]:
        """Return the failures of changes that cannot be computed, such as for want of a key: nobody tried them."""
        number, events = self._journal.complete_rounds(), []
        for turn in turns:
            failed, copy = turn.after.sync if turn.after is not None else None, (turn.cluster, turn.identity)
            is_first = self._failures.get(copy) is None and turn.cluster not in self._read
            if turn.after is None and copy in self._failures:
                self._failures[copy] = ""  # It is over: the same one is a new one.
            if not isinstance(failed, Failed) or failed.is_evaluated or self._failures.get(copy) == failed.why:
                continue
            self._failures[copy] = failed.why
            data = {"cause": "problem", "error": failed.why, **_behind(state, copy, failed), **_group(copy)}
            if not is_first or self._last_failure(_subject(copy)) != failed.why:
                events.append(Event(round=number, time=now, kind=EventKind.FAILED, subject=_subject(copy), data=data))
        self._read = {name for name, member in state.facts.members.items() if isinstance(member, Read)}
        self._journal.record_events(events)
        return tuple(events)

    def _drifted(self, facts: StateFacts, now: str) -> None:
        """Update drifts by others that are not healed: they wait, or stay."""
        drifts: dict[Copy, tuple[Change, Event]] = {}
        revision, number = facts.schedule.fleet.revision, self._journal.complete_rounds()
        for copy, change, outcome, why in _left(facts):
            known = self._drifts.get(copy)
            if known is not None and known[0] is change and known[1].data["outcome"] == outcome:
                drifts[copy] = known  # Nobody has looked at it since.
                continue
            altered = last_altered(self._journal, change)
            event = drift_event(number, revision, now, change, outcome, why, altered)
            if known is not None:
                before: Event | None = known[1]
            else:
                before = next(iter(self._journal.events(subject=event.subject, kind=EventKind.DRIFT, limit=1)), None)
            if before is None or _essence(before) != _essence(event):
                self._journal.record_events([event])
            drifts[copy] = (change, event)
        self._drifts = drifts


def _left(facts: StateFacts) -> Iterator[tuple[Copy, Change, DriftOutcome, str]]:
    is_observed = facts.schedule.fleet.settings.observe_only
    for copy, changes in facts.changes.items():
        for change in changes:
            if change.cause is not Cause.DRIFT:
                continue
            if is_observed:
                yield copy, change, DriftOutcome.LEFT, "the fleet is only observed (spec.mode: observe)"
            elif (hold := change.hold) is not None:
                is_left = hold.by is HeldBy.SETTINGS
                yield copy, change, DriftOutcome.LEFT if is_left else DriftOutcome.HELD, hold.why
            elif (fight := facts.fights.get(copy)) and {one.path for one in change.fields} <= {*fight.fields}:
                yield copy, change, DriftOutcome.LEFT, fight.why


def _holding(
    condition: Condition[_State], state: FleetState, turns: Iterable[StateChange]
) -> Iterator[tuple[Copy, _State]]:
    facts = state.facts
    for turn in turns:
        copy = (turn.cluster, turn.identity)
        verdict = condition(facts, copy, turn.after)
        if not isinstance(verdict, ConditionEnd):
            yield copy, verdict


def _is_evaluated_there(state: FleetState, cluster: str, hold: Event) -> bool:
    """Return whether all of a hold was evaluated: its named objects, else everything in its cluster."""
    facts, there = state.facts, state.clusters.get(cluster)
    member = facts.members.get(cluster)
    if there is None or there.is_left or not isinstance(member, Read) or not facts.schedule.fleet.is_complete:
        return False
    silent = [identity for identity, one in there.notable.items() if not one.sync.is_evaluated]
    unsure = [str(identity) for identity in (*silent, *member.under_way, *member.unread)]
    named = hold.data.get("objects", ())
    return not unsure or (len(named) == hold.data.get("held") and not set(named).intersection(unsure))


def _subject(copy: Copy) -> str:
    cluster, identity = copy
    return f"{identity} @ {cluster}"


def _cluster_of(subject: str) -> str:
    return subject.rpartition(" @ ")[2].removeprefix("cluster ")


def _group(copy: Copy) -> Mapping[str, str]:
    return {"group": copy[1].group} if copy[1].group else {}


def _copy_of(event: Event) -> Copy:
    """The copy that an event is about. Its group stands beside the subject; events of before have none."""
    named, _, cluster = event.subject.rpartition(" @ ")
    kind, _, name = named.partition(" ")
    namespace, _, name = name.rpartition("/")
    return cluster, Identity(str(event.data.get("group", "")), kind, namespace, name)


def _behind(state: FleetState, copy: Copy, condition: Refused | Degraded | Held | Fought | Failed) -> dict[str, str]:
    reason: dict[str, str] = to_builtins(behind(state.facts, *copy, condition))
    return reason


def _essence(event: Event) -> list[Any]:
    """Return the data that distinguish a drift: neither an unrelated commit nor other words of its holder."""
    data: Mapping[str, Any] = event.data
    return [data.get(key) for key in ("outcome", "action", "who", "fields", "values")]
