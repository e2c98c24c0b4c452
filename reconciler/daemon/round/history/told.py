"""What history was told already: a round tells only what is news, since most rounds see what the one before saw.

All of it is made from the state of the fleet, as everything is that is told. Source: design#history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.round.act import Result
from reconciler.daemon.round.history.episodes import Episodes, Holding
from reconciler.daemon.round.history.lasting import Flaps, Lasting, degraded_now, held_now, holds_by_cluster
from reconciler.daemon.round.history.steps import Steps
from reconciler.daemon.round.history.writes import drift_event, failures_told
from reconciler.model.ledger import DriftOutcome, Event, EventKind
from reconciler.model.observation import NotRead
from reconciler.model.plan import Cause, Change
from reconciler.stages.state import Copy, Facts, FleetState, HeldBy, Refused, Turn, held_by, step_of

_KINDS: Final = (
    *(EventKind.CLUSTER_AWAY, EventKind.OBJECT_REFUSED, EventKind.FIGHT_DETECTED),
    *(EventKind.HELD, EventKind.DEGRADED),
)


class Told:
    """Belongs to the task that writes the journal. A service that is started anew goes on with what the journal has."""

    def __init__(self, journal: Journal) -> None:
        """Read what has begun and is not over."""
        self._journal = journal
        self._episodes = Episodes(journal, _KINDS)
        self._failures: dict[Copy, str] = {}
        self._drifts: dict[Copy, tuple[Change, Event]] = {}
        self._in_the_way = Lasting(_in_the_way)
        self._held = Lasting(held_now)
        self._holds: Holding = {}
        self._degraded = Lasting(degraded_now)
        self._flaps = Flaps()
        self._steps = Steps(journal)

    def fresh(self, results: Iterable[Result]) -> tuple[Result, ...]:
        """The results without failures that history has already."""
        return failures_told(results, self._failures)

    def take_in(self, state: FleetState, turns: Sequence[Turn], now: str) -> None:
        """Record what is otherwise than history has it. `turns`: all that the state has otherwise than the last one."""
        facts = state.facts
        assert facts is not None, "it was made of something"
        with self._journal.transaction():
            self._clusters(facts, now)
            self._lasting(facts, turns, now)
            self._fought(facts, now)
            self._drifted(facts, now)
            self._steps.take_in(step_of(state), now)

    @property
    def steps(self) -> Steps:
        """Since when the revision in force is followed, and whether all was in step since."""
        return self._steps

    def _clusters(self, facts: Facts, now: str) -> None:
        kind, members = EventKind.CLUSTER_AWAY, facts.members
        self._episodes.forget(kind, {f"cluster {name}" for name in facts.decision.fleet.clusters})
        away = {f"cluster {name}": {"why": found.why} for name, found in members.items() if isinstance(found, NotRead)}
        self._episodes.update(kind, away, now, ends={f"cluster {name}" for name in members})

    def _lasting(self, facts: Facts, turns: Sequence[Turn], now: str) -> None:
        """What is refused, waits for a person or is degraded, since when and until when."""
        for found in (self._in_the_way, self._held, self._degraded):
            found.take_in(turns)
        # Of a cluster that is away it is not known whether anything of that is over.
        names = frozenset(name for name, member in facts.members.items() if isinstance(member, NotRead))
        refused = {_subject(copy): {"why": one.why, "code": one.code} for copy, one in self._in_the_way.items()}
        self._update(EventKind.OBJECT_REFUSED, refused, now, names)
        if self._held.is_changed:
            self._holds = holds_by_cluster(self._held)
        self._update(EventKind.HELD, self._holds, now, names)
        degraded = {_subject(copy): {"why": one.why} for copy, one in self._degraded.items()}
        begun = degraded.keys() - self._episodes.open(EventKind.DEGRADED)
        self._flaps.began(begun, now)
        self._update(EventKind.DEGRADED, degraded, now, names, goes_on=self._flaps.goes_on(now))

    def _update(
        self, kind: EventKind, holding: Holding, now: str, unread: Collection[str],
        goes_on: Collection[str] = (),
    ) -> None:  # fmt: skip
        over = [
            subject
            for subject in self._episodes.open(kind)
            if _cluster_of(subject) not in unread and subject not in goes_on
        ]
        self._episodes.update(kind, holding, now, ends=over)

    def _fought(self, facts: Facts, now: str) -> None:
        holding = {
            _subject(copy): {"who": _names(found.managers), "why": "our changes are undone again and again",
                             "until": found.until}
            for copy, found in facts.fights.items()
        }  # fmt: skip
        self._episodes.update(EventKind.FIGHT_DETECTED, holding, now, ends=())

    def fights_over(self, going_on: Iterable[Copy], now: str) -> None:
        """Fights end that are not among these."""
        known = self._episodes.open(EventKind.FIGHT_DETECTED)
        if known:
            over = known.difference(map(_subject, going_on))
            self._episodes.update(EventKind.FIGHT_DETECTED, {}, now, ends=over)

    def _drifted(self, facts: Facts, now: str) -> None:
        """What differs by somebody else's hand and is not set back: it waits, or is left."""
        found: dict[Copy, tuple[Change, Event]] = {}
        revision, number = facts.decision.fleet.revision, self._journal.complete_rounds()
        for copy, change, outcome, why in _left(facts):
            known = self._drifts.get(copy)
            if known is not None and known[0] is change and known[1].data["outcome"] == outcome:
                found[copy] = known  # Nobody has looked at it since.
                continue
            event = drift_event(number, revision, now, change, outcome, why)
            before = known[1] if known is not None else self._last_drift(event.subject)
            if before is None or _essence(before) != _essence(event):
                self._journal.record_events([event])
            found[copy] = (change, event)
        self._drifts = found

    def _last_drift(self, subject: str) -> Event | None:
        found = self._journal.events(subject=subject, kind=EventKind.DRIFT, limit=1)
        return found[0] if found else None


def _left(facts: Facts) -> Iterator[tuple[Copy, Change, DriftOutcome, str]]:
    is_observed = facts.decision.fleet.settings.observe_only
    for copy, changes in facts.changes.items():
        for change in changes:
            if change.cause is not Cause.DRIFT:
                continue
            if is_observed:
                yield copy, change, DriftOutcome.LEFT, "the fleet is only observed (spec.mode: observe)"
            elif change.held is not None:
                is_left = held_by(change, facts.closed) is HeldBy.SETTINGS
                yield copy, change, DriftOutcome.LEFT if is_left else DriftOutcome.HELD, change.held
            elif copy in facts.fights:
                yield copy, change, DriftOutcome.LEFT, facts.fights[copy].why


def _subject(copy: Copy) -> str:
    cluster, identity = copy
    return f"{identity} @ {cluster}"


def _cluster_of(subject: str) -> str:
    """The cluster of a copy's subject, or the cluster that is the subject itself."""
    return subject.rpartition(" @ ")[2].removeprefix("cluster ")


def _in_the_way(turn: Turn, _: Refused | None) -> Refused | None:
    return turn.after.sync if turn.after is not None and isinstance(turn.after.sync, Refused) else None


def _names(managers: Sequence[str]) -> str:
    return ", ".join(managers) or "somebody"


def _essence(event: Event) -> list[Any]:
    """What makes a drift another one: neither a commit that does not concern it nor other words of what holds it."""
    data: Mapping[str, Any] = event.data
    return [data.get(key) for key in ("outcome", "action", "who", "fields", "values")]
