"""The inputs of staging a schedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.rollouts.entering import Enter
from reconciler.model.ledger import JournalSnapshot
from reconciler.model.refs import Identity
from reconciler.stages.state import FleetState

Writing = tuple[Journal, Enter]
"""The places of a beginning's record: the journal, and the cluster."""


class Look(Struct, frozen=True, kw_only=True):
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
