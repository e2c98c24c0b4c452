"""Sights of small fleets with troubles, for tests of the views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from reconciler.api.fleet import Guards
from reconciler.api.ledger import Event
from reconciler.api.plan import Plan
from reconciler.api.problem import Problem
from reconciler.api.refs import CommitWords
from reconciler.planner import Round, guards_in_force
from reconciler.report.status import StateOfFleet
from reconciler.report.views import JournalRows, ViewModel
from reconciler.state import StateFacts, StateTables
from tests.fakes.worlds import NOW

WORDS = {"r1": CommitWords("alice", "Add the app", "2026-11-21T08:00:00Z")}

JUDGED = guards_in_force(None, Guards(), "r1", "2026-11-21T10:00:00Z")


def sight_of(
    facts: StateFacts,
    noted: JournalRows | None = None,
    problems: tuple[Problem, ...] = (),
    digest: str = "",
    **given: Any,
) -> ViewModel:
    """Return what a service would show of these facts."""
    facts = replace(facts, held_digest=digest)
    changes = tuple(change for due in facts.changes.values() for change in due)
    found = tuple(sorted({*problems, *(one for each in facts.problems.values() for one in each)}))
    plan = Plan(base="", head="r1", changes=changes, problems=found, held_digest=digest)
    planned = Round(
        schedule=facts.schedule, manifests=facts.manifests, plan=plan, problems=facts.problems, guards=JUDGED
    )
    source_error = given.pop("source_error", "")
    picture = StateOfFleet(
        round=planned, state=StateTables().update(facts), time=NOW, number=7, source_error=source_error
    )
    return ViewModel(picture=picture, journal=noted or JournalRows(), words=WORDS.get, since=NOW, now=NOW, **given)


def begun(*events: tuple[str, str]) -> Mapping[tuple[str, str], Event]:
    """Beginnings by kind and subject, an hour ago."""
    return {
        (kind, subject): Event(round=1, time="2026-11-21T09:00:00Z", kind=kind, subject=subject)
        for kind, subject in events
    }
