"""Laws of ticks and placement together, over generated fleets: nothing is lost, nothing goes to and fro.

Source: design#room-of-others: capped only as far as others have room; design#nowhere-else: nothing is evicted when
nothing else can take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Constraint
from reconciler.api.clusters import Observations
from reconciler.api.refs import Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import previous_of
from reconciler.scheduler import Schedule, schedule_fleet
from reconciler.scheduler.deschedule import deschedule
from reconciler.scheduler.failover import due_exclusions, is_taken_over, kept_exclusions
from tests.examples import examples
from tests.tick_cases import NOW, decided, observations

NAMES = ("m1", "m2", "m3")
LATER = "2026-11-21T10:00:05Z"
BY_ROOM = ("dynamic", "aggregated")
NODES = st.fixed_dictionaries({"cpu": st.integers(0, 8), "used": st.integers(0, 6)},
                              optional={"cordoned": st.booleans()})  # fmt: skip


@st.composite
def workload(draw: st.DrawFn, divisions: tuple[str, ...]) -> dict[str, Any]:
    shares = {name: draw(st.integers(0, 5)) for name in NAMES}
    there = {name: count for name, count in shares.items() if count} or {"m1": 1}
    division = draw(st.sampled_from(divisions))
    policy: dict[str, Any] = {"division": division, "ecs": draw(st.integers(0, 4)) == 0,
                              "failover": {"purgeMode": draw(st.sampled_from(["Graciously", "Never"]))}}  # fmt: skip
    if draw(st.booleans()) and division in BY_ROOM:
        policy["groups"] = {"a": ["m1", "m2"], "b": ["m3"]}
    if division == "gang":
        there = {min(there): sum(there.values())}
    if division == "duplicated":
        policy["only"] = draw(st.integers(1, 3))
        there = {name: draw(st.integers(1, 5)) for name in sorted(there)[: policy["only"]]}
    seen = {}
    for name, count in there.items():
        waiting = draw(st.integers(0, count))
        held = draw(st.none() | st.integers(0, count).map(lambda pods: {"n1": pods}))
        state = {"waiting": waiting, "since_s": draw(st.sampled_from([20, 400, 2000])), "held": held}
        sick = {"sick_s": draw(st.sampled_from([100, 400, 2000]))} if draw(st.booleans()) else {}
        seen[name] = {**state, **sick, "ready": draw(st.integers(0, count))}
    replicas = max(there.values()) if division == "duplicated" else sum(there.values())
    return {"replicas": replicas, "placed": there, "seen": seen, "policy": policy}


@st.composite
def cases(draw: st.DrawFn, *divisions: str) -> dict[str, Any]:
    return {
        "clusters": list(NAMES),
        "nodes": {name: {"n1": draw(NODES), "n2": draw(NODES)} for name in NAMES},
        "down": draw(st.lists(st.sampled_from(NAMES), max_size=1)),
        "workloads": {name: draw(workload(divisions)) for name in ("api", "db", "web")[: draw(st.integers(1, 3))]},
    }


def counts(schedule: Schedule) -> Mapping[Identity, int]:
    return {i: sum(target.replicas or 0 for target in binding.targets) for i, binding in schedule.bindings.items()}


def under(
    before: Schedule, seen: Observations, constraints: tuple[Constraint, ...], *, carried_out: bool = False
) -> tuple[Schedule, Observations]:
    """The schedule under the constraints; `carried_out`: as it is decided again after a round under them."""
    seen = replace(seen, constraints=constraints)
    schedule = schedule_fleet(before.fleet, seen, NOW, interpreters=BUILT_IN_KINDS)
    if carried_out:
        seen = replace(seen, previous=previous_of(schedule.bindings))
        schedule = schedule_fleet(before.fleet, seen, LATER, interpreters=BUILT_IN_KINDS)
    return schedule, seen


@given(cases(*BY_ROOM))
@settings(max_examples=examples(25), deadline=None)
def test_caps_lose_no_replicas(case: dict[str, Any]) -> None:
    seen = observations(case)
    before = decided(case, seen)
    caps = deschedule(before, seen, NOW)
    for cap in caps:
        assert 0 <= cap.replicas_max < (before.bindings[cap.identity].replicas_on(cap.cluster) or 0)
    for carried_out in (False, True):
        after, _ = under(before, seen, caps, carried_out=carried_out)
        assert counts(after) == counts(before)


@given(cases(*BY_ROOM), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_caps_do_not_change_while_nothing_is_seen_to_change(case: dict[str, Any], carried_out: bool) -> None:
    seen = observations(case)
    before = decided(case, seen)
    caps = deschedule(before, seen, NOW)
    after, seen = under(before, seen, caps, carried_out=carried_out)
    assert deschedule(after, seen, LATER) == caps


def failed_over(before: Schedule, seen: Observations) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...]]:
    """The exclusions that hold, and those for which nobody takes over."""
    due = due_exclusions(before, seen, NOW)
    after, _ = under(before, seen, due)
    refused = tuple(found for found in due if not is_taken_over(before, after, found))
    return tuple(found for found in due if found not in refused), refused


@given(cases(*BY_ROOM, "static", "duplicated", "gang"))
@settings(max_examples=examples(25), deadline=None)
def test_failover_loses_no_replicas(case: dict[str, Any]) -> None:
    seen = observations(case)
    before = decided(case, seen)
    exclusions, _ = failed_over(before, seen)
    for carried_out in (False, True):
        after, _ = under(before, seen, exclusions, carried_out=carried_out)
        assert counts(after) == counts(before)
        for found in exclusions:
            assert after.bindings[found.identity].targets


@given(cases(*BY_ROOM, "static", "duplicated", "gang"), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_exclusions_do_not_change_while_nothing_is_seen_to_change(case: dict[str, Any], carried_out: bool) -> None:
    seen = observations(case)
    before = decided(case, seen)
    exclusions, refused = failed_over(before, seen)
    after, seen = under(before, seen, exclusions, carried_out=carried_out)
    kept, restored = kept_exclusions(after, seen, LATER)
    # A healthy copy in a cluster that was not given up is no recovery.
    assert kept == exclusions
    assert not restored
    again = due_exclusions(after, seen, LATER)
    known = {(found.identity, found.cluster) for found in exclusions}
    assert not known & {(found.identity, found.cluster) for found in again}
    if not exclusions:
        assert [(found.identity, found.cluster) for found in again] == [(f.identity, f.cluster) for f in refused]
