"""The cause of a placement, by the rules alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.binding import Binding, Constraint, TargetCluster, Tick
from reconciler.api.ledger import Event, EventKind, EvictionRecord
from reconciler.api.plan import PlacementChange, Plan
from reconciler.api.refs import GVK, Identity
from reconciler.controller.round.episodes import PlacementReasons, placed_events
from reconciler.journal import Journal

WEB, KEYS = Identity("apps", "Deployment", "demo", "web"), Identity("", "Secret", "demo", "keys")
DEMO, OTHER = Identity("", "Namespace", "", "demo"), Identity("", "Namespace", "", "other")
NOW = "2026-11-21T10:00:00Z"
M1, M2 = TargetCluster("m1", 2), TargetCluster("m2", 2)
EVICTION = EvictionRecord(identity=WEB, cluster="m1", since=NOW, until="2026-11-21T10:10:00Z", who="li@host")


def moved(identity: Identity, before: tuple[TargetCluster, ...], after: tuple[TargetCluster, ...]) -> PlacementChange:
    return PlacementChange(gvk=GVK("", "v1", identity.kind), identity=identity, before=before, after=after)


def ticked(tick: Tick) -> Mapping[tuple[Identity, str], Constraint]:
    return {(WEB, "m1"): Constraint(identity=WEB, cluster="m1", replicas_max=0, reason="a reason", tick=tick)}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as journal:
        yield journal


def event(kind: EventKind, who: str) -> Event:
    return Event(round=1, time=NOW, kind=kind, subject=f"{WEB} @ m1", data={"who": who})


def behind(
    origins: PlacementReasons, *placements: PlacementChange, recorded: set[Identity] | None = None
) -> dict[str, str]:
    every = {found.identity for found in placements} if recorded is None else recorded
    plan = Plan(base="", head="r", placements=placements)
    return {found.subject: found.data.get("who", "") for found in placed_events(1, NOW, plan, every, origins)}


@pytest.mark.parametrize(
    ("given", "before", "after", "who"),
    [
        ({"is_advanced": True}, (), (M1,), ""),
        ({}, (), (M1,), ""),
        ({"is_advanced": True}, (M1,), (M2,), ""),
        ({}, (M1,), (M2,), "clusters"),
        ({"is_advanced": True, "ticked": ticked(Tick.FAILOVER)}, (M1,), (M2,), "failover"),
        ({"ticked": ticked(Tick.DESCHEDULING)}, (M1,), (M1._replace(replicas=1), M2),
         "descheduling"),
        ({"is_advanced": True, "ticked": ticked(Tick.EVICTION), "evictions": (EVICTION,)}, (M1,), (M2,),
         "li@host"),
        ({"ticked": ticked(Tick.EVICTION)}, (M1,), (M2,), "a person"),
        # It was taken back before the round was recorded.
        ({"ticked": ticked(Tick.EVICTION), "events": [event(EventKind.EVICTED, "li")]}, (M1,), (M2,), "li"),
        # What a constraint keeps away from m1 already has nothing to do with what leaves m2.
        ({"is_advanced": True, "ticked": ticked(Tick.FAILOVER)}, (M2,), (), ""),
        # It left the store by an earlier commit, and goes now that its Rollout is through.
        ({}, (M1,), (), ""),
        ({"bindings": {WEB: Binding(identity=WEB, policy=None)}}, (M1,), (), "clusters"),
        ({"now": EVICTION.until, "evictions": (EVICTION,)}, (M2,), (M1,), "li@host"),
        ({"events": [event(EventKind.READMITTED, "wu")]}, (M2,), (M1,), "wu"),
        ({"events": [event(EventKind.READMITTED, "wu"), event(EventKind.CREATED, "")]}, (M2,), (M1,), "clusters"),
    ],
)  # fmt: skip
def test_who_is_behind_it(
    journal: Journal,
    given: Mapping[str, Any],
    before: tuple[TargetCluster, ...],
    after: tuple[TargetCluster, ...],
    who: str,
) -> None:
    journal.record_events(given.get("events", ()))
    more = {key: value for key, value in given.items() if key != "events"}
    origins = PlacementReasons(journal=journal, **{"now": NOW, "is_advanced": False, **more})
    assert behind(origins, moved(WEB, before, after)) == {str(WEB): who}


def test_what_goes_along_has_who_moved_what_it_follows(journal: Journal) -> None:
    origins = PlacementReasons(
        journal=journal,
        now=NOW,
        is_advanced=False,
        ticked=ticked(Tick.EVICTION),
        evictions=(EVICTION,),
        bindings={KEYS: Binding(identity=KEYS, policy=None, owners=(WEB,))},
    )
    found = behind(origins, *(moved(identity, (M1,), (M2,)) for identity in (WEB, KEYS, DEMO, OTHER)))
    assert found == {str(WEB): "li@host", str(KEYS): "li@host", str(DEMO): "li@host", str(OTHER): "clusters"}


def test_only_what_was_recorded_is_told(journal: Journal) -> None:
    origins = PlacementReasons(journal=journal, now=NOW, is_advanced=True)
    found = behind(origins, moved(WEB, (), (M1,)), moved(KEYS, (), (M1,)), recorded={KEYS})
    assert list(found) == [str(KEYS)]
