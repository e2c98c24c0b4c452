"""Older revisions of the store, for clusters that are behind.

Source: ADR 18: blobs are shared, so two revisions cost what differs; a commit that is gone freezes its clusters.

The inputs of staging a schedule.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct, field

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.refs import Identity
from reconciler.api.rollouts import Lineage
from reconciler.controller.reading.members import Reachable
from reconciler.controller.rollouts.entering import Enter
from reconciler.controller.tasks import in_thread
from reconciler.journal.sqlite_journal import Journal
from reconciler.staging import Revisions
from reconciler.state import FleetState

FleetAt = Callable[[str], Awaitable[Fleet | None]]
"""The fleet of a revision; None: it is not there, or cannot be read."""


class RevisionSource(Protocol):
    """The revisions of a store."""

    def lineage(self, revisions: Collection[str], head: str) -> Lineage:
        """Which of these are ancestors of a revision, and which are not there. Reads files."""

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """The commits that texts name. Reads files."""

    def keep(self, revisions: Collection[str]) -> None:
        """Keep these readable, and no others. Writes files."""


class RevisionsInForce:
    """The revisions that are recorded, pinned, or were in force a moment ago."""

    def __init__(self, source: RevisionSource, fleet_at: FleetAt) -> None:
        """Nothing is read yet."""
        self._source = source
        self._fleet_at = fleet_at
        self._fleets: dict[str, Fleet] = {}
        self._asked: tuple[frozenset[str], str] | None = None
        self._lineage = Lineage()
        self._kept: frozenset[str] = frozenset()
        self._head: Fleet | None = None

    async def of(self, head: Fleet, recorded: Collection[str], pins: Collection[str]) -> Revisions:
        """Return recorded revisions and those that pins name."""
        if self._head is not None and self._head is not head:
            # What was in force a moment ago is the revision of whoever is behind, and need not be read again.
            self._fleets[self._head.revision] = self._head
        self._head = head
        pinned = await in_thread(self._source.resolve, sorted(pins)) if pins else {}
        wanted = frozenset({*recorded, *pinned.values()} - {""})
        if self._asked != (wanted, head.revision):
            self._lineage = await in_thread(self._source.lineage, sorted(wanted), head.revision)
            self._asked = (wanted, head.revision)
        for revision in sorted(wanted - self._fleets.keys() - {head.revision}):
            found = await self._fleet_at(revision)
            if found is not None:
                self._fleets[revision] = found
        self._fleets = {revision: fleet for revision, fleet in self._fleets.items() if revision in wanted}
        readable = {revision: fleet for revision, fleet in self._fleets.items() if revision != head.revision}
        missing = wanted - readable.keys() - {head.revision}
        return Revisions(fleets=readable, order=self._lineage.order, missing=missing, pinned=pinned)

    async def keep(self, revisions: Collection[str]) -> None:
        """Keep recorded revisions, before anything depends on them."""
        wanted = frozenset(revisions) - {""}
        if wanted != self._kept:
            await in_thread(self._source.keep, sorted(wanted))
            self._kept = wanted


Writing = tuple[Journal, Enter]
"""The places of a beginning's record: the journal, and the cluster."""


class RolloutInputs(Struct, frozen=True, kw_only=True):
    """The inputs of staging a schedule.

    `shown`: the state of the fleet after the last round. `closed`: clusters that windows of the fleet close, with RFC
    3339 of the end. `away`: clusters that cannot be changed now, and why.
    """

    reachable: Reachable
    journal: JournalSnapshot
    copies: Mapping[Identity, Collection[str]]
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    shown: FleetState | None = None


def away_in(reachable: Reachable, held: Mapping[str, str], closed: Mapping[str, str]) -> dict[str, str]:
    """Return why clusters cannot be changed now: unreachable, owned by another process, or suspended by a person."""
    found = {name: member for name, member in reachable.items() if isinstance(member, str)}
    found |= held
    if "fleet" in closed:
        return dict.fromkeys(reachable, closed["fleet"]) | found
    return {name: closed[f"cluster {name}"] for name in reachable if f"cluster {name}" in closed} | found
