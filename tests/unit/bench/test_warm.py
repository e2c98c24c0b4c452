"""A second start is measured in a process of its own, on a fleet with and one without overrides, and on the twin."""

from __future__ import annotations

from bench import unkind, warm


def test_measures_every_fleet() -> None:
    found = warm.main(100, rounds=1)
    parts = ("", "_load", "_save", "_bodies", "_parsed")
    assert found.keys() == {name + part for name in ("warm", "warm_plain", "warm_unkind") for part in parts}
    assert all(seconds > 0 for key, seconds in found.items() if not key.endswith("_parsed"))
    assert found["warm_parsed"] == found["warm_plain_parsed"] == 0
    assert found["warm_unkind_parsed"] == sum(b"kind: Secret" in data for _, data in unkind.store_files(100))
