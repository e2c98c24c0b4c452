"""A second start is measured in a process of its own, on a fleet with and one without overrides."""

from __future__ import annotations

from bench import warm


def test_measures_both_fleets() -> None:
    found = warm.main(100, rounds=1)
    assert found.keys() == {
        name + part for name in ("warm", "warm_plain") for part in ("", "_load", "_save", "_bodies")
    }
    assert all(seconds > 0 for seconds in found.values())
