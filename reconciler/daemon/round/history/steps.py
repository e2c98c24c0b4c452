"""Since when a revision is in force, and when everything was in step with it: once for each time it came into force."""

from __future__ import annotations

from typing import Final

from reconciler.adapters.journal.books.events import EventFilter
from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.round.history.episodes import STORE
from reconciler.model.ledger import Event, EventKind
from reconciler.stages.observations import age_s
from reconciler.stages.state import Step

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

    def take_in(self, step: Step, now: str) -> tuple[Event, ...]:
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
