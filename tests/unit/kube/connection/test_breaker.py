from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clock import BackOff
from reconciler.kube.connection.bounds import Breaker
from tests.fakes.clocks import TestClock

BACK_OFF = BackOff(least_s=5, most_s=20)


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def breaker(clock: TestClock) -> Breaker:
    return Breaker(clock.monotonic_s, 2, BACK_OFF)


def test_lets_everything_through_until_failures_come_in_a_row(breaker: Breaker) -> None:
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert breaker.wait_s() == 0
    assert not breaker.is_open


def test_pauses_after_failures_in_a_row(breaker: Breaker, clock: TestClock) -> None:
    breaker.failed()
    breaker.failed()
    assert breaker.wait_s() == 5
    clock.advance(4)
    assert breaker.wait_s() == 1


def test_lets_one_probe_through_after_the_pause(breaker: Breaker, clock: TestClock) -> None:
    breaker.failed()
    breaker.failed()
    clock.advance(5)
    assert breaker.wait_s() == 0
    assert breaker.wait_s() > 0
    breaker.abandoned()
    assert breaker.wait_s() == 0
    breaker.succeeded()
    assert [breaker.wait_s() for _ in range(3)] == [0, 0, 0]


def test_pauses_twice_as_long_after_each_failed_probe_up_to_the_bound(breaker: Breaker, clock: TestClock) -> None:
    breaker.failed()
    breaker.failed()
    pauses = []
    for _ in range(4):
        pauses.append(breaker.wait_s())
        clock.advance(pauses[-1])
        assert breaker.wait_s() == 0
        breaker.failed()
    assert pauses == [5, 10, 20, 20]


def test_failures_of_requests_that_were_under_way_do_not_lengthen_the_pause(breaker: Breaker) -> None:
    for _ in range(50):
        breaker.failed()
    assert breaker.wait_s() == 5


@given(st.lists(st.sampled_from(["fail", "succeed", "ask", "abandon", "wait"])))
def test_never_shuts_a_cluster_out_for_longer_than_the_longest_pause(steps: list[str]) -> None:
    clock = TestClock()
    breaker = Breaker(clock.monotonic_s, 2, BACK_OFF)
    for step in steps:
        match step:
            case "fail":
                breaker.failed()
            case "succeed":
                breaker.succeeded()
            case "ask":
                breaker.wait_s()
            case "abandon":
                breaker.abandoned()
            case _:
                clock.advance(1)
    breaker.abandoned()
    clock.advance(BACK_OFF.most_s)
    assert breaker.wait_s() == 0
