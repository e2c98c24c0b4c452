"""Spans and times as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clock import SystemClock, TimeOfDay, epoch_s, moment, rfc3339, seconds_in
from reconciler.errors import ConfigurationError


@given(st.integers(min_value=0, max_value=4_000_000_000))
def test_what_is_written_reads_back(moment: int) -> None:
    assert epoch_s(rfc3339(moment)) == moment


def test_reads_offsets_and_fractions_as_api_servers_and_plugins_write_them() -> None:
    assert epoch_s("2026-11-21T11:00:00.250000Z") == epoch_s("2026-11-21T12:00:00.25+01:00")


@pytest.mark.parametrize("text", ["", "soon", "2026-11-21T11:00:00", "2026-13-01T00:00:00Z"])
def test_refuses_what_names_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        epoch_s(text)


async def test_the_machines_clock_goes_forward() -> None:
    clock = SystemClock()
    before, wall = clock.monotonic_s(), clock.now()
    await clock.sleep(0.001)
    assert clock.monotonic_s() > before
    assert clock.now() >= wall


class _Machine:
    """A machine whose wall clock people set."""

    def __init__(self) -> None:
        self.boot_s = 1000.0
        self.wall_s = 1_750_000_000.0
        self.time = TimeOfDay(lambda: self.wall_s, lambda: self.boot_s)

    def after(self, seconds: float, *, jump_s: float = 0.0) -> float:
        """By how much the time is ahead of what has passed, after so many seconds and a jump of the wall clock."""
        self.boot_s += seconds
        self.wall_s += seconds + jump_s
        return self.time.epoch_s() - 1_750_000_000.0 - (self.boot_s - 1000.0)


def test_a_clock_that_is_adjusted_is_followed() -> None:
    machine = _Machine()
    assert [machine.after(60, jump_s=jump_s) for jump_s in (0, 90, -30, 0)] == [0, 90, 60, 60]


@pytest.mark.parametrize("jump_s", [3 * 3600.0, -3 * 3600.0])
def test_a_jump_is_believed_when_it_has_stood_for_minutes(jump_s: float) -> None:
    machine = _Machine()
    assert machine.after(10, jump_s=jump_s) == 0
    assert [machine.after(100) for _ in range(2)] == [0, 0]
    assert machine.after(100) == jump_s
    assert machine.after(1) == jump_s


def test_a_jump_that_is_taken_back_moves_nothing() -> None:
    machine = _Machine()
    assert machine.after(10, jump_s=7200) == 0
    assert machine.after(200) == 0
    assert machine.after(1, jump_s=-7200) == 0
    assert machine.after(1000) == 0


def test_each_jump_has_to_stand_by_itself() -> None:
    machine = _Machine()
    assert machine.after(10, jump_s=7200) == 0
    assert machine.after(200, jump_s=7200) == 0
    assert machine.after(200) == 0
    assert machine.after(100) == 14400


def test_a_machine_that_slept_has_not_jumped() -> None:
    assert _Machine().after(8 * 3600) == 0


NOW = "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800)]
)
def test_a_span_is_a_sum_of_parts(text: str, seconds: int) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-2h", "2h ", "2y", "1.5h", "２h", "9999999h"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no span of time"):
        seconds_in(text)


def test_a_time_is_given_back_in_utc() -> None:
    assert moment("2026-11-21T18:00:00+08:00", "2026-11-21T09:59:59Z") == NOW


@pytest.mark.parametrize("text", [NOW, "2026-11-21T09:00:00Z", "2026-11-21", "2026-11-21T18:00:00", "soon"])
def test_a_time_has_a_zone_and_lies_ahead(text: str) -> None:
    with pytest.raises(ConfigurationError):
        moment(text, NOW)
