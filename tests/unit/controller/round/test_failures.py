from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.plan import Change
from reconciler.api.refs import Identity
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.failed_changes import failures_after
from reconciler.planner import Round
from reconciler.state import Failed
from tests.fakes.holds import hold
from tests.fakes.worlds import TestBed, config_map, fleet_of, policy

APP = Identity("", "ConfigMap", "demo", "app")
AT_M1 = ("m1", APP)


def first_round() -> Round:
    return TestBed().plan(fleet_of(config_map(), policy("ConfigMap", "m1", "m2")))


def app_at_m1(planned: Round) -> Change:
    return next(change for change in planned.plan.changes if (change.cluster, change.identity) == AT_M1)


def without(planned: Round, change: Change) -> Round:
    kept = tuple(found for found in planned.plan.changes if found is not change)
    return replace(planned, plan=replace(planned.plan, changes=kept))


def test_a_failure_stays_while_its_change_is_due_and_was_not_tried_again() -> None:
    planned = first_round()
    failed = failures_after({}, planned, [ChangeResult(change=app_at_m1(planned), error="no room")])
    assert failed == {AT_M1: Failed("no room", revision=planned.plan.head)}
    assert failures_after(failed, planned, []) == failed


def test_the_last_error_counts() -> None:
    planned = first_round()
    results = [ChangeResult(change=app_at_m1(planned), error="new")]
    assert failures_after({AT_M1: Failed("old")}, planned, results) == {
        AT_M1: Failed("new", revision=planned.plan.head)
    }
    known = {AT_M1: Failed("new", revision="where it began")}
    assert failures_after(known, planned, results) == known, "a later commit is not behind it"


def test_a_failure_ends_when_the_change_is_made_or_no_longer_due() -> None:
    planned = first_round()
    change = app_at_m1(planned)
    assert failures_after({AT_M1: Failed("no room")}, without(planned, change), []) == {}
    assert failures_after({AT_M1: Failed("no room")}, planned, [ChangeResult(change=change)]) == {}


def test_a_change_that_is_held_waits_and_has_not_failed() -> None:
    planned = first_round()
    held = replace(app_at_m1(planned), hold=hold("suspended"))
    rest = without(planned, app_at_m1(planned))
    picture = replace(rest, plan=replace(rest.plan, changes=(*rest.plan.changes, held)))
    assert failures_after({AT_M1: Failed("no room")}, picture, []) == {}
