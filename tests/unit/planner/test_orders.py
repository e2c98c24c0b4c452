from __future__ import annotations

import pytest

from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import Plan
from reconciler.observations import in_force
from reconciler.planner import Round, restrained
from tests.fakes.worlds import TestBed, config_map, fleet_of, policy

NOW = "2026-11-21T10:00:00Z"


def round_of_two() -> Round:
    """Creates of a ConfigMap in m1 and m2, and of the Namespace there."""
    return TestBed().plan(fleet_of(config_map(), policy("ConfigMap", "m1", "m2")))


def suspend(*records: SuspensionRecord) -> Plan:
    return restrained(round_of_two(), records, NOW).plan


def held(plan: Plan) -> set[str]:
    return {f"{change.cluster} {change.identity.kind}" for change in plan.changes if change.held}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("fleet", {"m1 ConfigMap", "m1 Namespace", "m2 ConfigMap", "m2 Namespace"}),
        ("cluster m1", {"m1 ConfigMap", "m1 Namespace"}),
        ("ConfigMap demo/app", {"m1 ConfigMap", "m2 ConfigMap"}),
        ("cluster m9", set()),
        ("ConfigMap demo/ap", set()),
    ],
)
def test_holds_what_the_scope_covers(scope: str, expected: set[str]) -> None:
    plan = suspend(SuspensionRecord(scope=scope))
    assert held(plan) == expected
    waiting = {f"{plan.changes[i].cluster} {plan.changes[i].identity.kind}" for wave in plan.waves for i in wave}
    assert waiting & expected == set()
    assert len(waiting) == 4 - len(expected)


def test_says_who_until_when_and_why() -> None:
    record = SuspensionRecord(scope="fleet", who="ada", until="2026-11-22T00:00:00Z", reason="maintenance")
    plan = suspend(record)
    assert plan.changes[0].held == "fleet is suspended by ada until 2026-11-22T00:00:00Z: maintenance"


def test_nothing_is_touched_without_a_suspension() -> None:
    assert suspend() == round_of_two().plan


def test_a_suspension_ends_by_itself() -> None:
    records = [SuspensionRecord(scope="a"), SuspensionRecord(scope="b", until=NOW),
               SuspensionRecord(scope="c", until="2026-11-21T10:00:01Z")]  # fmt: skip
    assert [record.scope for record in in_force(records, NOW)] == ["a", "c"]
