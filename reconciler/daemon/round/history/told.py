"""What history was told already: a round tells only what is news, since most rounds see what the one before saw."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.adapters.clock import epoch_s, rfc3339
from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.round.act import Result
from reconciler.daemon.round.history.episodes import Episodes
from reconciler.daemon.round.history.writes import drift_event, failures_told, managers_of
from reconciler.engine import Round
from reconciler.model.events import DriftOutcome, EventKind
from reconciler.model.ledger import Event
from reconciler.model.observation import Member, NotRead
from reconciler.model.plan import Action, Cause, Change
from reconciler.model.refs import Identity

IN_THE_WAY: Final = frozenset({"object-not-ours", "object-of-another-tool", "object-let-go"})
"""Codes of problems that tell of an object which is not ours where one of ours is to be."""
_KINDS: Final = (EventKind.CLUSTER_AWAY, EventKind.OBJECT_REFUSED, EventKind.FIGHT_DETECTED)

Copy = tuple[str, Identity]
Fought = Mapping[Copy, str]
"""Copies that are left alone since somebody fights for them, with the reason in words."""
_NOBODY: Final[Fought] = {}


class Told:
    """Belongs to the task that writes the journal. A service that is started anew goes on with what the journal has."""

    def __init__(self, journal: Journal) -> None:
        """Read what has begun and is not over."""
        self._journal = journal
        self._episodes = Episodes(journal, _KINDS)
        self._failures: dict[Copy, str] = {}
        self._drifts: dict[Copy, tuple[Change, Event]] = {}
        self._in_the_way: dict[Identity, dict[str, dict[str, str]]] = {}

    def fresh(self, results: Iterable[Result]) -> tuple[Result, ...]:
        """The results without failures that history has already."""
        return failures_told(results, self._failures)

    def take_in(
        self,
        picture: Round,
        members: Mapping[str, Member],
        now: str,
        only: Collection[Identity] | None = None,
        fought: Fought = _NOBODY,
    ) -> None:
        """Record what is otherwise than history has it.

        `members`: how each was seen last. `only`: what was looked at; None: everything.
        """
        with self._journal.transaction():
            self._clusters(picture, members, now)
            self._refused(picture, members, now, only)
            self._drifted(picture, now, fought)

    def _clusters(self, picture: Round, members: Mapping[str, Member], now: str) -> None:
        kind = EventKind.CLUSTER_AWAY
        self._episodes.forget(kind, {f"cluster {name}" for name in picture.decision.fleet.clusters})
        away = {f"cluster {name}": {"why": found.why} for name, found in members.items() if isinstance(found, NotRead)}
        self._episodes.update(kind, away, now, ends={f"cluster {name}" for name in members})

    def _refused(
        self, picture: Round, members: Mapping[str, Member], now: str, only: Collection[Identity] | None
    ) -> None:
        kind = EventKind.OBJECT_REFUSED
        if only is None:
            self._in_the_way.clear()
        for identity in picture.problems if only is None else only:
            found = {
                f"{identity} @ {problem.cluster}": {"why": problem.message, "code": problem.code}
                for problem in picture.problems.get(identity, ())
                if problem.code in IN_THE_WAY and problem.cluster
            }
            if found:
                self._in_the_way[identity] = found
            else:
                self._in_the_way.pop(identity, None)
        # Of a cluster that is away it is not known whether anything is in the way there.
        unread = tuple(f" @ {name}" for name, member in members.items() if isinstance(member, NotRead))
        holding = {subject: data for found in self._in_the_way.values() for subject, data in found.items()}
        known = self._episodes.open(kind)
        self._episodes.update(kind, holding, now, ends=(each for each in known if not each.endswith(unread)))

    def _drifted(self, picture: Round, now: str, fought: Fought) -> None:
        """What differs by somebody else's hand and is not set back: it waits, or is left."""
        found: dict[Copy, tuple[Change, Event]] = {}
        for change, outcome, why in _left(picture, fought):
            copy = (change.cluster, change.identity)
            known = self._drifts.get(copy)
            if known is not None and known[0] is change and known[1].data["outcome"] == outcome:
                found[copy] = known  # Nobody has looked at it since.
                continue
            event = drift_event(self._journal.complete_rounds(), picture.plan.head, now, change, outcome, why)
            before = known[1] if known is not None else self._last_drift(event.subject)
            if before is None or _essence(before) != _essence(event):
                self._journal.record_events([event])
            found[copy] = (change, event)
        self._drifts = found

    def _last_drift(self, subject: str) -> Event | None:
        found = self._journal.events(subject=subject, kind=EventKind.DRIFT, limit=1)
        return found[0] if found else None

    def fight(self, change: Change, now: str, pause_s: float) -> None:
        """A fight began, or goes on, which is no news."""
        who, until = ", ".join(managers_of(change)) or "somebody", rfc3339(epoch_s(now) + pause_s)
        subject = f"{change.identity} @ {change.cluster}"
        data = {"who": who, "why": "our changes are undone again and again", "until": until}
        self._episodes.update(EventKind.FIGHT_DETECTED, {subject: data}, now, ends=())

    def fights_over(self, going_on: Iterable[Copy], now: str) -> None:
        """Fights end that are not among these."""
        known = self._episodes.open(EventKind.FIGHT_DETECTED)
        if known:
            still = {f"{identity} @ {cluster}" for cluster, identity in going_on}
            self._episodes.update(EventKind.FIGHT_DETECTED, {}, now, ends=known - still)


def _left(picture: Round, fought: Fought) -> Iterator[tuple[Change, DriftOutcome, str]]:
    is_observed = picture.decision.fleet.settings.observe_only
    for change in picture.plan.changes:
        if change.cause is not Cause.DRIFT:
            continue
        fight = fought.get((change.cluster, change.identity))
        if is_observed:
            yield change, DriftOutcome.LEFT, "the fleet is only observed (spec.mode: observe)"
        elif change.held is not None:
            is_left = change.action is Action.UPDATE and not picture.decision.fleet.settings.self_heal
            yield change, DriftOutcome.LEFT if is_left else DriftOutcome.HELD, change.held
        elif fight is not None:
            yield change, DriftOutcome.LEFT, fight


def _essence(event: Event) -> list[Any]:
    """What makes a drift another one: neither a commit that does not concern it nor other words of what holds it."""
    return [event.data.get(key) for key in ("outcome", "action", "who", "fields", "values")]
