"""Application failover, by the case table tests/cases/ticks/failover.yaml, each case citing its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, Tick
from reconciler.api.clusters import Observations
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.observations import age_s
from reconciler.scheduler import Schedule, overdue, schedule_fleet
from reconciler.scheduler.failover import PER_TICK, due_exclusions, is_taken_over, kept_exclusions
from tests.tick_cases import NOW, Case, decided, identity, moment, observations, overlaid, targets
from tests.yaml_text import load_yaml

TABLE = Path(__file__).parents[2] / "cases" / "ticks" / "failover.yaml"
CASES: list[Case] = load_yaml(TABLE.read_text())


class Ticked(Struct, frozen=True, kw_only=True):
    """The result of a tick, and the clusters that it looked at."""

    schedule: Schedule
    seen: Observations
    kept: tuple[Constraint, ...]
    restored: tuple[PreviousPlacement, ...]
    due: tuple[Constraint, ...]

    def after(self) -> tuple[Constraint, ...]:
        """The exclusions from now on, where others take over."""
        replaced = {(found.identity, found.cluster) for found in self.due}
        return (*(known for known in self.kept if (known.identity, known.cluster) not in replaced), *self.due)


def tick(case: Case, ago_s: float = 0, constraints: tuple[Constraint, ...] = ()) -> Ticked:
    seen, now = observations(case, ago_s, constraints), moment(ago_s)
    schedule = decided(case, seen, ago_s)
    kept, restored = kept_exclusions(schedule, seen, now)
    due = due_exclusions(schedule, replace(seen, constraints=kept), now)
    return Ticked(schedule=schedule, seen=seen, kept=kept, restored=tuple(restored.values()), due=due)


def ticked(case: Case) -> Ticked:
    """The tick now; `earlier` describes how it was when others ran before, `ago_s` ago each."""
    constraints: tuple[Constraint, ...] = ()
    for stage in case.get("earlier", []):
        given = dict(stage)
        ago_s = given.pop("ago_s")
        constraints = tick(overlaid(case, given), ago_s, constraints).after()
        assert constraints, "something was excluded"
    return tick(case, constraints=constraints)


def place(found: Constraint) -> str:
    return found.cluster if found.identity.name == "web" else f"{found.identity.name} @ {found.cluster}"


def lengths(found: tuple[Constraint, ...]) -> dict[str, Any]:
    """Return the seconds for which each is in force, by where it is."""
    return {place(one): int(age_s(one.since, one.until)) if one.until else "no end" for one in found}


def taken_over(found: Ticked) -> dict[str, bool]:
    after = schedule_fleet(
        found.schedule.fleet, replace(found.seen, constraints=found.after()), NOW, interpreters=BUILT_IN_KINDS
    )
    return {place(exclusion): is_taken_over(found.schedule, after, exclusion) for exclusion in found.due}


def test_every_case_has_its_own_name_and_a_source() -> None:
    assert len({case["case"] for case in CASES}) == len(CASES)
    assert all(case.get("source") and "due" in case for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_excludes_as_the_rule_says(case: Case) -> None:
    found = ticked(case)
    assert lengths(found.due) == case["due"]
    assert list(lengths(found.due)) == case.get("order", list(lengths(found.due)))
    assert lengths(found.kept) == case.get("kept", {})
    restored = {one.identity.name: dict(one.targets) for one in found.restored}
    assert restored == case.get("restored", {})
    if "taken_over" in case:
        assert taken_over(found) == case["taken_over"]


BROKEN = {"replicas": 2, "placed": {"m1": 2}, "policy": {"failover": {}}, "seen": {"m1": {"sick_s": 400}}}


def test_an_exclusion_says_who_made_it_when_and_what_was_before() -> None:
    (found,) = tick(BROKEN).due
    assert (found.identity, found.tick, found.since, found.excludes) == (
        identity("web", BROKEN), Tick.FAILOVER, NOW, True,
    )  # fmt: skip
    assert found.reason == "unhealthy since 2026-11-21T09:53:20Z"
    assert found.before == targets({"m1": 2})
    assert found.until == "2026-11-21T10:10:00Z"


def many(number: int) -> dict[str, Any]:
    """Applications a00, a01, … in m1; the later ones have been broken for longer."""
    made = {f"a{index:02}": {"seen": {"m1": {"sick_s": 400 + index}}} for index in range(number)}
    return {**BROKEN, "replicas": 1, "placed": {"m1": 1}, "seen": {}, "workloads": made}


def test_a_fault_that_many_share_does_not_set_everything_in_motion() -> None:
    names = [found.identity.name for found in tick(many(PER_TICK + 3)).due]
    assert names == [f"a{index:02}" for index in range(PER_TICK + 2, 2, -1)]
    assert len(names) == 8


def test_what_could_go_nowhere_lets_others_have_their_turn() -> None:
    found = tick(many(PER_TICK + 1))
    tried: dict[Any, int] = {(one.identity, one.cluster): 1 for one in found.due}
    again = due_exclusions(found.schedule, found.seen, NOW, tried)
    assert [one.identity.name for one in again][:2] == ["a00", "a08"]


def test_what_a_broken_file_froze_stays_where_it_is() -> None:
    found = tick(BROKEN)
    schedule = replace(found.schedule, frozen=frozenset({identity("web", BROKEN)}))
    assert due_exclusions(schedule, found.seen, NOW) == ()


def test_a_dependency_is_not_failed_over_by_its_own_health() -> None:
    # A Pod that a policy of its own does not claim, and that follows its owner.
    found = tick(BROKEN)
    binding = replace(found.schedule.bindings[identity("web", BROKEN)], is_dependency=True)
    schedule = replace(found.schedule, bindings={binding.identity: binding})
    assert due_exclusions(schedule, found.seen, NOW) == ()


def test_constraints_of_others_are_not_given_back() -> None:
    which = identity("web", BROKEN)
    others = tuple(
        Constraint(identity=which, cluster="m2", replicas_max=0, reason="", tick=tick, since=NOW, excludes=True)
        for tick in (Tick.GIVEN, Tick.DESCHEDULING, Tick.EVICTION)
    )
    seen = observations(BROKEN, constraints=others)
    assert kept_exclusions(decided(BROKEN, seen), seen, NOW)[0] == ()


def test_an_exclusion_that_is_kept_is_the_same_value() -> None:
    before = tick(BROKEN).due
    seen = observations(BROKEN, constraints=before)
    assert kept_exclusions(decided(BROKEN, seen), seen, "2026-11-21T10:09:59Z")[0] == before


MOVING = {
    "replicas": 2, "placed": {"m2": 2}, "policy": {"failover": {}},
    "seen": {"m1": {"sick_s": 400, "replicas": 2}, "m2": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("now", "over", "is_over"),
    [
        ("2026-11-21T10:10:00Z", {}, True),
        ("2026-11-21T10:09:59Z", {}, False),
        ("2026-11-21T10:10:00Z", {"seen": {"m2": {"waiting": 1}}}, False),
        ("2026-11-21T10:10:00Z", {"seen": {"m2": {"without_node": 1}}}, False),
        ("2026-11-21T10:10:00Z", {"seen": {"m2": {"without_node": None}}}, False),
        ("2026-11-21T10:10:00Z", {"down": ["m2"]}, False),
        ("2026-11-21T10:10:00Z", {"down": ["m1"]}, False),
        ("2026-11-21T10:10:00Z", {"policy": {"failover": {"purgeMode": "Never"}}}, False),
        ("2026-11-21T10:10:00Z", {"policy": {"failover": {"gracePeriodSeconds": 601}}}, False),
        ("2026-11-21T10:00:30Z", {"policy": {"failover": {"gracePeriodSeconds": 30}}}, True),
    ],
)
def test_a_copy_whose_grace_is_over_is_looked_at_again(now: str, over: Case, is_over: bool) -> None:
    exclusion = replace(tick(BROKEN).due[0], until="")
    case = overlaid(MOVING, over)
    seen = observations(case, constraints=(exclusion,))
    schedule = decided(case, seen)
    assert (identity("web", MOVING), "m1") in schedule.ticked
    assert overdue(schedule, seen, now) == ({identity("web", MOVING)} if is_over else set())


def test_a_copy_that_is_gone_is_not_looked_at_again() -> None:
    exclusion = replace(tick(BROKEN).due[0], until="")
    case = {**MOVING, "seen": {"m2": {}}}
    seen = observations(case, constraints=(exclusion,))
    assert overdue(decided(case, seen), seen, "2026-11-21T10:20:00Z") == set()


def test_what_others_took_away_is_not_looked_at_again() -> None:
    order = replace(tick(BROKEN).due[0], until="", tick=Tick.EVICTION)
    seen = observations(MOVING, constraints=(order,))
    assert overdue(decided(MOVING, seen), seen, "2026-11-21T10:20:00Z") == set()
