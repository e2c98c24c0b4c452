"""The work queue of what is tried again, on a clock that stands still until told."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from reconciler.clock import BackOff
from reconciler.controller.tasks import WorkQueue
from tests.fakes.clocks import TestClock

PAUSES = BackOff(least_s=2, most_s=10)


def pauses_of(queue: WorkQueue[str], clock: TestClock, failures: int) -> list[float]:
    """The pauses after so many failures in a row of a key, each of which is tried when it is due."""
    found = []
    for _ in range(failures):
        queue.requeue_rate_limited("a")
        found.append(queue.next_s - clock.monotonic_s())
        clock.advance(found[-1])
        assert queue.due() == ["a"]
    return found


def test_what_fails_in_a_row_is_tried_ever_more_rarely_until_it_is_forgotten() -> None:
    clock = TestClock()
    queue = WorkQueue[str](PAUSES, clock)
    assert pauses_of(queue, clock, 5) == [2, 4, 8, 10, 10]
    queue.forget("a")
    assert ("a" in queue, queue.next_s) == (False, inf)
    assert pauses_of(queue, clock, 2) == [2, 4]
    queue.reset("a")
    assert queue.due() == ["a"], "when it is due stays"
    assert pauses_of(queue, clock, 1) == [2]


def test_other_pauses_count_as_no_failure() -> None:
    clock = TestClock()
    queue = WorkQueue[str](PAUSES, clock)
    pauses_of(queue, clock, 2)
    queue.requeue_after("a", 60)
    assert queue.is_waiting("a")
    clock.advance(60)
    assert (queue.due(), queue.is_waiting("a")) == (["a"], False)
    assert pauses_of(queue, clock, 1) == [8]


def test_an_earlier_time_stays_unless_it_is_requeued() -> None:
    clock = TestClock()
    queue = WorkQueue[str](PAUSES, clock)
    for pause_s in (5, 3, 9):
        queue.add_after("a", pause_s)
    assert queue.next_s == 3
    queue.requeue_after("a", 9)
    assert queue.next_s == 9
    queue.requeue_after("a", 0.0)
    assert queue.due() == ["a"]


def test_what_is_being_worked_on_is_due_no_more_and_its_failures_count() -> None:
    clock = TestClock()
    queue = WorkQueue[str](PAUSES, clock)
    pauses_of(queue, clock, 2)
    queue.take("a")
    assert (queue.due(), queue.next_s, list(queue.keys)) == ([], inf, ["a"])
    assert pauses_of(queue, clock, 1) == [8]
    queue.take("nobody")
    assert "nobody" not in queue


def test_what_waits_longest_comes_first_and_what_is_not_kept_is_forgotten() -> None:
    clock = TestClock()
    queue = WorkQueue[str](PAUSES, clock)
    for key, pause_s in (("a", 3.0), ("b", 1.0), ("c", 2.0), ("d", 9.0)):
        queue.requeue_after(key, pause_s)
    clock.advance(3)
    assert queue.due() == ["b", "c", "a"]
    queue.keep({"a", "d"})
    assert (queue.due(), queue.next_s) == (["a"], 3)


def test_where_many_fail_each_is_tried_more_rarely() -> None:
    clock = TestClock()
    queue = WorkQueue[int](PAUSES, clock, per_second_max=10)
    for key in range(1000):
        queue.requeue_rate_limited(key)
    for _ in range(99):
        due = queue.due()
        assert len(due) <= 10 * PAUSES.least_s
        for key in due:
            queue.take(key)
        clock.advance(1)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_jitter_takes_up_to_half_of_a_pause_away(failures: int, jitter: float) -> None:
    whole_s = PAUSES.pause_s(failures)
    assert whole_s / 2 <= PAUSES.pause_s(failures, lambda: jitter) <= whole_s <= PAUSES.most_s
