"""Journals as rounds leave them, made without any cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.refs import GVK
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.failed_changes import facts_of, failures_after, last_contacts, merged
from reconciler.controller.round.record_round import record_picture, remember
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import plan_round
from reconciler.report.status import StateOfFleet
from reconciler.state import StateTables
from tests.fleets import fleet_of
from tests.unit.cli.command_line import APP, CLUSTERS, FLEET

NOW = "2026-11-21T10:00:00Z"
LATER = "2026-11-21T11:00:00Z"
SERVED = {GVK("", "v1", "ConfigMap"): True, GVK("", "v1", "Namespace"): False}
ORPHAN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: orphan, namespace: demo}\n"


def shop(**files: str) -> Fleet:
    """The fleet of the app, with more files or other ones."""
    return fleet_of({f"{name}.yaml": text for name, text in {"f": FLEET, "c": CLUSTERS, "app": APP, **files}.items()})


def empty(name: str) -> Read:
    """A cluster that answers and holds nothing of what is wanted."""
    wanted = plan_round(FleetSnapshot(fleet=shop(), interpreters=BUILT_IN_KINDS, now=NOW)).schedule.bindings
    return Read(name=name, served=SERVED, kinds=frozenset(gvk.group_kind for gvk in SERVED), absent=frozenset(wanted))


def record_round(
    journal: Journal,
    fleet: Fleet | None = None,
    members: dict[str, Member] | None = None,
    *,
    now: str = NOW,
    errors: dict[str, str] | None = None,
    source: str = "",
) -> int:
    """A round whose changes were all made, but those that `errors` names by kind; its number."""
    fleet = fleet or shop()
    journal.record_fleet(fleet.settings.name)
    members = members if members is not None else {name: empty(name) for name in fleet.clusters}
    snapshot = FleetSnapshot(
        fleet=fleet,
        interpreters=BUILT_IN_KINDS,
        now=now,
        members=members,
        journal=JournalSnapshot(has_history=journal.complete_rounds() > 0),
    )
    planned = plan_round(snapshot)
    failures = errors or {}
    results = [
        ChangeResult(change=change, error=failures.get(change.identity.kind, ""))
        for wave in planned.plan.waves
        for change in (planned.plan.changes[index] for index in wave)
    ]
    number = remember(journal, planned, snapshot, results)
    picture = merged(None, planned, results, snapshot)
    contacts = {name: now for name, member in members.items() if isinstance(member, Read)}
    facts = msgspec.structs.replace(
        facts_of(picture, members),
        failures=failures_after({}, picture, results),
        journal=JournalSnapshot(ledger=journal.ledger()),
        last_contact={**last_contacts(journal.state()), **contacts},
    )
    state = StateTables().update(facts)
    record_picture(journal, StateOfFleet(round=picture, state=state, time=now, number=number, source=source))
    return number


def down(name: str, why: str = "connection refused") -> NotRead:
    """A cluster that does not answer."""
    return NotRead(name=name, why=why)


def journal_at(folder: Path) -> Path:
    path = folder / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal)
    return path
