"""Clusters that are not watched are listed: once in each interval, spread over it, the same after each start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from reconciler.controller import timing
from reconciler.controller.watches.polls import ClusterPollTime, moment_after

NAMES = [f"cluster-{number}" for number in range(1000)]


class Turns:
    def __init__(self, names: list[str], interval_s: float, now_s: float = 0.0) -> None:
        self.each = {name: ClusterPollTime(name, interval_s, now_s) for name in sorted(names)}

    def due(self, now_s: float, hurried: Collection[str] = ()) -> list[str]:
        return [name for name, turn in self.each.items() if turn.take(now_s, is_hurried=name in hurried)]


@given(st.sampled_from(NAMES), st.floats(1, 1e5), st.floats(0, 1e7))
def test_a_moment_is_always_ahead_and_at_most_an_interval_away(name: str, interval_s: float, now_s: float) -> None:
    moment = moment_after(name, interval_s, now_s)
    assert now_s < moment <= (now_s + interval_s) * (1 + 1e-9)


@given(st.lists(st.sampled_from(NAMES), unique=True, max_size=30), st.integers(5, 900), st.integers(0, 10**6))
def test_every_cluster_has_one_turn_in_each_interval(names: list[str], interval_s: int, start_s: int) -> None:
    turns, taken = Turns(names, interval_s, start_s), Counter[str]()
    for second in range(1, 3 * interval_s + 1):
        taken.update(turns.due(start_s + second))
    assert all(2 <= taken[name] <= 4 for name in names)


def test_a_thousand_clusters_are_spread_over_the_interval() -> None:
    turns = Turns(NAMES, 600)
    at_once = [len(turns.due(second)) for second in range(1, 601)]
    assert sum(at_once) >= 998, "one at the very end may be seen by the next look"
    assert max(at_once) <= 12


def test_the_moments_are_the_same_after_another_start() -> None:
    first, second = Turns(NAMES, 600), Turns(NAMES[::-1], 600, now_s=37.0)
    first.due(37.0)
    assert [first.due(float(now)) for now in range(40, 90)] == [second.due(float(now)) for now in range(40, 90)]


def test_another_interval_counts_at_once() -> None:
    turns = Turns(NAMES[:50], 100_000)
    for turn in turns.each.values():
        turn.every(60, 10)
    assert sorted({name for second in range(11, 71) for name in turns.due(second)}) == sorted(NAMES[:50])


def test_a_cluster_whose_gate_is_judged_is_listed_more_often_and_no_other_one() -> None:
    turns, taken = Turns(["m1", "m2"], 6000), Counter[str]()
    for second in range(1, 601):
        taken.update(turns.due(second, {"m1", "gone"}))
    assert taken["m1"] >= 600 / timing.HURRY_S - 1
    assert taken["m2"] <= 1
