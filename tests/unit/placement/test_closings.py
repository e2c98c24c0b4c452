"""A cluster where nothing may be written is no target of what a tick or a person moves: a third one is tried."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, Tick
from reconciler.api.clusters import Observations, Workload
from reconciler.api.policies import ConflictResolution, Suspension
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import Schedule, ScheduleTables, Ticked, schedule_fleet, tick
from tests.tick_cases import NOW, fleet, observations

WEB = Identity("apps", "Deployment", "demo", "web")
SICK: dict[str, Any] = {
    "replicas": 2,
    "clusters": ["m1", "m2", "m3"],
    "nodes": {"m1": {"n1": {"cpu": 8}}, "m2": {"n1": {"cpu": 6}}, "m3": {"n1": {"cpu": 4}}},
    "policy": {"division": "duplicated", "only": 1, "failover": {}},
    "placed": {"m1": 2},
    "seen": {"m1": {"sick_s": 400}},
}
WRITTEN = {WEB: {"m1"}}
BY_ORDER = [{"cluster m2": "cluster m2 is suspended by anna"}]
EVERYWHERE = [{"fleet": "fleet is suspended by anna"}, {"Deployment demo/web": "Deployment demo/web is suspended"}]
DIVISIONS: list[dict[str, Any]] = [
    {"division": "duplicated", "only": 1},
    {"division": "aggregated"},
    {"division": "gang"},
    {},
]


def case(**terms: Any) -> dict[str, Any]:
    return {**SICK, "policy": {**terms, "failover": {}}}


def ticked(given: dict[str, Any], seen: Observations, **of_policy: Any) -> tuple[Ticked, Any]:
    """One look, and how it decides."""
    store = fleet(given)
    changed = tuple(replace(policy, **of_policy) for policy in store.propagation)
    store = replace(store, propagation=changed)

    def under(given: Observations) -> Schedule:
        return schedule_fleet(store, given, NOW, copies=WRITTEN, interpreters=BUILT_IN_KINDS)

    return tick(under(seen), seen, NOW, under), under


def where(schedule: Schedule) -> dict[str, int | None]:
    return dict(schedule.bindings[WEB].targets)


def with_foreign(seen: Observations, of_fleet: str | None) -> Observations:
    found = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, of_fleet=of_fleet)
    m2 = replace(seen.clusters["m2"], workloads={WEB: found})
    return replace(seen, clusters={**seen.clusters, "m2": m2})


@pytest.mark.parametrize("terms", DIVISIONS)
def test_failover_goes_where_something_may_be_written(terms: dict[str, Any]) -> None:
    given = case(**terms)
    seen = observations(given)
    open_to_all, _ = ticked(given, seen)
    assert "m2" in where(open_to_all.schedule), "m2 comes first when nothing stands against it"
    for closed in BY_ORDER:
        found, under = ticked(given, replace(seen, closed=closed))
        assert where(found.schedule) == {"m3": 2}
        assert found.excluded
        assert str(found.schedule.bindings[WEB].cluster_reasons["m2"]) == f"excluded: {closed['cluster m2']}"
        # Nothing moves to and fro: not in the next round, and not when the order ends.
        previous = {WEB: PreviousPlacement(identity=WEB, targets=found.schedule.bindings[WEB].targets)}
        later = replace(seen, constraints=found.constraints, previous=previous)
        assert where(under(replace(later, closed=closed))) == {"m3": 2}
        assert where(under(later)) == {"m3": 2}


def test_failover_leaves_out_where_the_policy_suspends_dispatching() -> None:
    found, _ = ticked(SICK, observations(SICK), suspension=Suspension(clusters=("m2",)))
    assert where(found.schedule) == {"m3": 2}
    assert "dispatching is suspended by" in str(found.schedule.bindings[WEB].cluster_reasons["m2"])


@pytest.mark.parametrize(
    ("of_fleet", "resolution", "goes_to"),
    [
        ("", ConflictResolution.ABORT, "m3"),
        ("other", ConflictResolution.ABORT, "m3"),
        ("other", ConflictResolution.OVERWRITE, "m3"),
        ("", ConflictResolution.OVERWRITE, "m2"),
        (None, ConflictResolution.ABORT, "m2"),
    ],
)
def test_failover_leaves_out_where_an_object_stands_in_the_way(
    of_fleet: str | None, resolution: ConflictResolution, goes_to: str
) -> None:
    seen = with_foreign(observations(SICK), of_fleet)
    found, _ = ticked(SICK, seen, conflict_resolution=resolution)
    assert where(found.schedule) == {goes_to: 2}


@pytest.mark.parametrize("closed", EVERYWHERE)
@pytest.mark.parametrize("terms", DIVISIONS)
def test_where_nothing_may_be_written_anywhere_nothing_moves(terms: dict[str, Any], closed: dict[str, str]) -> None:
    given = case(**terms)
    found, _ = ticked(given, replace(observations(given), closed=closed))
    assert where(found.schedule) == {"m1": 2}
    assert not found.excluded
    assert [left.cluster for left in found.left] == ["m1"]


@pytest.mark.parametrize("tick_", [Tick.EVICTION, Tick.DESCHEDULING, Tick.GIVEN])
def test_what_a_person_or_descheduling_moves_goes_where_something_may_be_written(tick_: Tick) -> None:
    order = Constraint(identity=WEB, cluster="m1", replicas_max=0, excludes=True, reason="r", tick=tick_)
    for terms in DIVISIONS:
        given = case(**terms)
        seen = replace(observations(given), constraints=(order,), closed=BY_ORDER[0])
        assert where(schedule_fleet(fleet(given), seen, NOW, copies=WRITTEN, interpreters=BUILT_IN_KINDS)) == {"m3": 2}
        everywhere = replace(seen, closed=EVERYWHERE[0])
        schedule = schedule_fleet(fleet(given), everywhere, NOW, copies=WRITTEN, interpreters=BUILT_IN_KINDS)
        assert where(schedule) == {"m1": 2}
        assert "fleet is suspended by anna" in str(schedule.bindings[WEB].cluster_reasons["m3"])


def test_a_closed_cluster_keeps_what_it_has_and_gets_no_more() -> None:
    given = {**case(), "replicas": 4, "placed": {"m1": 2, "m2": 2}}
    order = Constraint(identity=WEB, cluster="m1", replicas_max=0, excludes=True, reason="r")
    seen = replace(observations(given), constraints=(order,), closed=BY_ORDER[0])
    assert where(schedule_fleet(fleet(given), seen, NOW, copies={WEB: {"m1", "m2"}}, interpreters=BUILT_IN_KINDS)) == {
        "m2": 2,
        "m3": 2,
    }


def test_without_a_constraint_orders_move_nothing() -> None:
    given = {**SICK, "placed": {"m2": 2}}
    for closed in (*BY_ORDER, *EVERYWHERE):
        assert where(
            schedule_fleet(fleet(given), replace(observations(given), closed=closed), NOW, interpreters=BUILT_IN_KINDS)
        ) == {"m2": 2}


def test_what_was_decided_before_is_decided_again_when_a_cluster_closes_or_opens() -> None:
    order = Constraint(identity=WEB, cluster="m1", replicas_max=0, excludes=True, reason="r")
    seen, memo, store = replace(observations(SICK), constraints=(order,)), ScheduleTables(), fleet(SICK)
    for now in (seen, replace(seen, closed=BY_ORDER[0]), seen, with_foreign(seen, ""), with_foreign(seen, None)):
        again = schedule_fleet(store, now, NOW, copies=WRITTEN, tables=memo, interpreters=BUILT_IN_KINDS)
        assert where(again) == where(schedule_fleet(store, now, NOW, copies=WRITTEN, interpreters=BUILT_IN_KINDS))


def test_a_target_that_turns_out_to_be_taken_is_left_for_another_as_long_as_nothing_was_written_there() -> None:
    order = Constraint(identity=WEB, cluster="m1", replicas_max=0, excludes=True, reason="r")
    seen = with_foreign(replace(observations({**SICK, "placed": {"m2": 2}}), constraints=(order,)), "")
    assert where(schedule_fleet(fleet(SICK), seen, NOW, copies=WRITTEN, interpreters=BUILT_IN_KINDS)) == {"m3": 2}
    closed = replace(with_foreign(seen, "test"), closed=BY_ORDER[0])
    assert where(schedule_fleet(fleet(SICK), closed, NOW, copies={WEB: {"m1", "m2"}}, interpreters=BUILT_IN_KINDS)) == {
        "m2": 2
    }
