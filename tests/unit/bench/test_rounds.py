"""The rounds of a service are measured on a loop that really writes each commit."""

from __future__ import annotations

from bench.rounds import commits


async def test_rounds_of_a_small_fleet_are_timed() -> None:
    found = await commits(200, number=2)
    assert found.keys() == {"round_p50", "round_p99"}
    assert all(seconds > 0 for seconds in found.values())
