from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.adapters.clock import SystemClock, epoch_s, rfc3339


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
