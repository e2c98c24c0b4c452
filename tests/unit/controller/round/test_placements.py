"""The cause of a placement, by the rules alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.api.binding import Constraint, TargetCluster, Tick
from reconciler.api.ledger import EvictionRecord
from reconciler.api.plan import PlacementChange, Plan
from reconciler.api.refs import GVK, Identity
from reconciler.controller.round.episodes import Origins, placed_events

WEB, KEYS = Identity("apps", "Deployment", "demo", "web"), Identity("", "Secret", "demo", "keys")
DEMO, OTHER = Identity("", "Namespace", "", "demo"), Identity("", "Namespace", "", "other")
NOW = "2026-11-21T10:00:00Z"
M1, M2 = TargetCluster("m1", 2), TargetCluster("m2", 2)
EVICTION = EvictionRecord(identity=WEB, cluster="m1", since=NOW, until="2026-11-21T10:10:00Z", who="li@host")


def moved(identity: Identity, before: tuple[TargetCluster, ...], after: tuple[TargetCluster, ...]) -> PlacementChange:
    return PlacementChange(gvk=GVK("", "v1", identity.kind), identity=identity, before=before, after=after)


def ticked(tick: Tick) -> Mapping[tuple[Identity, str], Constraint]:
    return {(WEB, "m1"): Constraint(identity=WEB, cluster="m1", replicas_max=0, reason="a reason", tick=tick)}


def behind(origins: Origins, *placements: PlacementChange, recorded: set[Identity] | None = None) -> dict[str, str]:
    every = {found.identity for found in placements} if recorded is None else recorded
    plan = Plan(base="", head="r", placements=placements)
    return {found.subject: found.data.get("who", "") for found in placed_events(1, NOW, plan, every, origins)}


@pytest.mark.parametrize(
    ("origins", "before", "after", "who"),
    [
        (Origins(now=NOW, is_advanced=True), (), (M1,), ""),
        (Origins(now=NOW, is_advanced=False), (), (M1,), ""),
        (Origins(now=NOW, is_advanced=True), (M1,), (M2,), ""),
        (Origins(now=NOW, is_advanced=False), (M1,), (M2,), "clusters"),
        (Origins(now=NOW, is_advanced=True, ticked=ticked(Tick.FAILOVER)), (M1,), (M2,), "failover"),
        (Origins(now=NOW, is_advanced=False, ticked=ticked(Tick.DESCHEDULING)), (M1,), (M1._replace(replicas=1), M2),
         "descheduling"),
        (Origins(now=NOW, is_advanced=True, ticked=ticked(Tick.EVICTION), evictions=(EVICTION,)), (M1,), (M2,),
         "li@host"),
        (Origins(now=NOW, is_advanced=False, ticked=ticked(Tick.EVICTION)), (M1,), (M2,), "a person"),
        # It was taken back before the round was recorded.
        (Origins(now=NOW, is_advanced=False, ticked=ticked(Tick.EVICTION), evicted_by=lambda identity, cluster: "li"),
         (M1,), (M2,), "li"),
        # What a constraint keeps away from m1 already has nothing to do with what leaves m2.
        (Origins(now=NOW, is_advanced=True, ticked=ticked(Tick.FAILOVER)), (M2,), (), ""),
        (Origins(now=EVICTION.until, is_advanced=False, evictions=(EVICTION,)), (M2,), (M1,), "li@host"),
        (Origins(now=NOW, is_advanced=False, freed=lambda identity, cluster: {"who": f"wu {cluster}"}), (M2,), (M1,),
         "wu m1"),
    ],
)  # fmt: skip
def test_who_is_behind_it(
    origins: Origins, before: tuple[TargetCluster, ...], after: tuple[TargetCluster, ...], who: str
) -> None:
    assert behind(origins, moved(WEB, before, after)) == {str(WEB): who}


def test_what_goes_along_has_who_moved_what_it_follows() -> None:
    origins = Origins(
        now=NOW,
        is_advanced=False,
        ticked=ticked(Tick.EVICTION),
        evictions=(EVICTION,),
        owners=lambda identity: (WEB,) if identity == KEYS else (),
    )
    found = behind(origins, *(moved(identity, (M1,), (M2,)) for identity in (WEB, KEYS, DEMO, OTHER)))
    assert found == {str(WEB): "li@host", str(KEYS): "li@host", str(DEMO): "li@host", str(OTHER): "clusters"}


def test_only_what_was_recorded_is_told() -> None:
    found = behind(Origins(now=NOW, is_advanced=True), moved(WEB, (), (M1,)), moved(KEYS, (), (M1,)), recorded={KEYS})
    assert list(found) == [str(KEYS)]
