"""Episodes: an unreachable cluster, a write conflict, an obstacle, a store that cannot be read.

History has the beginning and the end of each once, also if the service was restarted in between.
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
"""Present episodes: subject to the data of its event, with its `why`."""

STORE: Final = "store"
"""The subject of events about the store as a whole."""
_GROWING: Final = frozenset({EventKind.DEGRADED, EventKind.HELD, EventKind.FROZEN})
"""Episodes with further events while they last; these have the start time, too."""
_END_OF: Final = {begin: end for end, begin in ENDS.items()}


class Episodes:
    """Those that have begun and are not over. All of it belongs to the task that writes the journal."""

    def __init__(self, journal: Journal, kinds: Iterable[EventKind]) -> None:
        """Continue the journal's unfinished episodes. `kinds`: of beginnings."""
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
        """Return unfinished episodes, by subject."""
        return self._open[kind]

    def update(self, kind: EventKind, holding: Holding, now: str, *, over: Iterable[str]) -> tuple[Event, ...]:
        """Record beginnings, and ends of episodes that are `over`: others go on. Return the events of both.

        A broken store with another error begins anew: each error is worth an event. So does a degraded object with
        another reason, since the first one is seldom the most useful, and a hold that has grown.
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
        """Drop episodes that are not among these: they neither go on nor end."""
        self._open[kind] = {subject: self._open[kind][subject] for subject in set(kept) & self._open[kind].keys()}

    def _ended(self, kind: EventKind, begun: Event, now: str) -> Event:
        kept = {key: begun.data[key] for key in ("why", "who") if key in begun.data}
        return self._event(_END_OF[kind], begun.subject, now, {**kept, "since": begun_at(begun)})

    def _event(self, kind: EventKind, subject: str, now: str, data: Mapping[str, Any]) -> Event:
        return Event(round=self._journal.complete_rounds(), time=now, kind=kind, subject=subject, data=data)


def begun_at(event: Event) -> str:
    """Return the start of an episode, from its last event."""
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
