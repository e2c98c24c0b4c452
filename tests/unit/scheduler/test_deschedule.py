"""Descheduling, by the case table tests/cases/ticks/descheduling.yaml, each case citing its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.scheduler.deschedule import deschedule
from tests.tick_cases import NOW, Case, decided, identity, moment, observations, overlaid, workloads
from tests.yaml_text import load_yaml

TABLE = Path(__file__).parents[2] / "cases" / "ticks" / "descheduling.yaml"
CASES: list[Case] = load_yaml(TABLE.read_text())


def caps_of(case: Case) -> tuple[Constraint, ...]:
    """The caps now; `earlier` describes how it was `ago_s` before, when a first tick ran."""
    before: tuple[Constraint, ...] = ()
    if "earlier" in case:
        given = dict(case["earlier"])
        ago_s = given.pop("ago_s")
        then = overlaid(case, given)
        seen = observations(then, ago_s)
        before = deschedule(decided(then, seen, ago_s), seen, moment(ago_s))
        assert before, "there was a cap"
    seen = observations(case, constraints=before)
    return deschedule(decided(case, seen), seen, NOW)


def shown(caps: tuple[Constraint, ...]) -> dict[str, Any]:
    """`name @ cluster` to the most replicas there; a cluster alone where it is about `web`."""
    return {
        cap.cluster if cap.identity.name == "web" else f"{cap.identity.name} @ {cap.cluster}": cap.replicas_max
        for cap in caps
    }


def test_every_case_has_its_own_name_and_a_source() -> None:
    assert len({case["case"] for case in CASES}) == len(CASES)
    assert all(case.get("source") and "expect" in case for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_caps_as_the_rule_says(case: Case) -> None:
    caps = caps_of(case)
    assert shown(caps) == case["expect"]
    assert list(shown(caps)) == case.get("order", list(shown(caps)))


WAITING = {"replicas": 3, "placed": {"m1": 3}, "seen": {"m1": {"waiting": 2, "since_s": 45}}}


def test_a_cap_says_who_set_it_when_and_why() -> None:
    (cap,) = caps_of(WAITING)
    assert (cap.identity, cap.tick, cap.since, cap.until, cap.excludes) == (
        identity("web", WAITING), Tick.DESCHEDULING, NOW, "", False,
    )  # fmt: skip
    assert cap.reason == "2 pods found no node there since 2026-11-21T09:59:15Z"
    assert cap.basis


def test_one_pod_is_one_pod() -> None:
    (cap,) = caps_of(overlaid(WAITING, {"seen": {"m1": {"waiting": 1}}}))
    assert cap.reason.startswith("1 pod found")


def test_a_cap_that_is_kept_is_the_same_value() -> None:
    seen = observations(WAITING)
    before = deschedule(decided(WAITING, seen), seen, NOW)
    for later in ("2026-11-21T10:02:00Z", "2026-11-21T11:00:00Z"):
        assert deschedule(decided(WAITING, seen), replace(seen, constraints=before), later) == before


def test_constraints_of_others_are_not_given_back() -> None:
    which = identity("web", WAITING)
    others = tuple(
        Constraint(identity=which, cluster="m2", replicas_max=1, reason="", tick=tick, since=NOW)
        for tick in (Tick.GIVEN, Tick.FAILOVER, Tick.EVICTION)
    )
    seen = observations(WAITING, constraints=others)
    assert [cap.cluster for cap in deschedule(decided(WAITING, seen), seen, NOW)] == ["m1"]


def test_what_a_broken_file_froze_is_not_moved() -> None:
    seen = observations(WAITING)
    schedule = replace(decided(WAITING, seen), frozen=frozenset({identity("web", WAITING)}))
    assert deschedule(schedule, seen, NOW) == ()


def test_workloads_of_the_table_are_all_of_the_store() -> None:
    assert all(name in ("web", "api", "db") for case in CASES for name in workloads(case))
