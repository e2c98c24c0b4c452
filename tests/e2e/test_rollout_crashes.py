"""A rollout goes on after kill -9 where what is in force is recorded. `make soak` tries many more points."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.rollouts import trial

POINTS = (
    "before entries of rollouts are written",
    "after entries of rollouts were written",
    "after a rollout was recorded",
)


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_costs_no_gate(tmp_path: Path, point: str) -> None:
    assert trial(tmp_path, point) == 1
