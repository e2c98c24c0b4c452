"""What begins and ends: a cluster that is away, a fight, an object in the way, a store that cannot be followed.

History has each once when it begins and once when it is over, also where the service was started anew in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from reconciler.adapters.journal.books.events import EVENTS_MAX, EventFilter
from reconciler.adapters.journal.journal import Journal
from reconciler.model.ledger import ENDS, Event, EventKind
from reconciler.report.mask import scrub_text
from reconciler.stages.state import says_more

Holding = Mapping[str, Mapping[str, Any]]
"""What is so now: subject to what history is to have of it, its `why` among it."""

STORE: Final = "store"
"""The subject of what concerns the store as a whole."""
_GROWING: Final = frozenset({EventKind.DEGRADED, EventKind.HELD, EventKind.FROZEN})
"""Of which more may be told while it lasts; that says since when, too."""
_END_OF: Final = {begin: end for end, begin in ENDS.items()}


class Episodes:
    """Those that have begun and are not over. All of it belongs to the task that writes the journal."""

    def __init__(self, journal: Journal, kinds: Iterable[EventKind]) -> None:
        """Go on with what the journal has no end of. `kinds`: of beginnings."""
        self._journal = journal
        self._open: dict[EventKind, dict[str, Event]] = {begin: {} for begin in kinds}
        wanted = tuple(map(str, (*self._open, *(_END_OF[begin] for begin in self._open))))
        for _, event in reversed(journal.newest_events(EventFilter(kinds=wanted), EVENTS_MAX)):
            kind = EventKind(event.kind)
            if kind in self._open:
                self._open[kind][event.subject] = event
            else:
                self._open[ENDS[kind]].pop(event.subject, None)

    def open(self, kind: EventKind) -> Mapping[str, Event]:
        """What has begun and is not over, by subject."""
        return self._open[kind]

    def update(self, kind: EventKind, holding: Holding, now: str, *, over: Iterable[str]) -> tuple[Event, ...]:
        """Record what began, and what is known to be `over`: what is in neither goes on. The events of both.

        A store that is broken otherwise than before begins anew: each error is worth an event. So is another reason why
        an object is degraded, since the first one known is seldom the one that helps, and a hold that has grown.
        """
        known = self._open[kind]
        ended = known.keys() & set(over) - holding.keys()
        found = [self._ended(kind, known.pop(subject), now) for subject in sorted(ended)]
        for subject, given in sorted(holding.items()):
            data = {key: scrub_text(value) if isinstance(value, str) else value for key, value in given.items()}
            before = known.get(subject)
            if before is not None and kind in _GROWING:
                data["since"] = begun_at(before)
            if before is None or _is_news(kind, before, data):
                known[subject] = self._event(kind, subject, now, data)
                found.append(known[subject])
        if found:
            self._journal.record_events(found)
        return tuple(found)

    def forget(self, kind: EventKind, kept: Iterable[str]) -> None:
        """What is not among these is nobody's concern any more: it neither goes on nor is over."""
        self._open[kind] = {subject: self._open[kind][subject] for subject in set(kept) & self._open[kind].keys()}

    def _ended(self, kind: EventKind, begun: Event, now: str) -> Event:
        kept = {key: begun.data[key] for key in ("why", "who") if key in begun.data}
        return self._event(_END_OF[kind], begun.subject, now, {**kept, "since": begun_at(begun)})

    def _event(self, kind: EventKind, subject: str, now: str, data: Mapping[str, Any]) -> Event:
        return Event(round=self._journal.complete_rounds(), time=now, kind=kind, subject=subject, data=data)


def begun_at(event: Event) -> str:
    """When an episode began, by the last event that tells of it."""
    return str(event.data.get("since") or event.time)


def _is_news(kind: EventKind, before: Event, data: Mapping[str, Any]) -> bool:
    known, why = str(before.data.get("why")), str(data.get("why"))
    if kind is EventKind.DEGRADED:
        return says_more(known, why)
    if kind is EventKind.HELD:
        return int(data["held"]) > int(before.data.get("held", 0))
    return before.subject == STORE and known != why


def advanced_event(journal: Journal, revision: str, now: str) -> Event:
    """Another revision is in force than the journal has. Asked before that is recorded."""
    before = journal.revision_in_force
    data = {"revision": revision, **({"before": before} if before else {})}
    return Event(round=journal.complete_rounds(), time=now, kind=EventKind.ADVANCED, subject=STORE, data=data)
