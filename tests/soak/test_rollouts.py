"""Rollouts under kill -9 at every point that the service passes. Source: ADR 18."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.rollouts import points, trial

pytestmark = pytest.mark.soak

EVERY = int(os.environ.get("ROLLOUT_POINTS_EVERY", "3"))
"""Of so many points one is tried."""


@pytest.mark.timeout(0)
def test_no_crash_costs_a_gate(tmp_path: Path) -> None:
    passed = points(tmp_path)
    died = [trial(tmp_path / str(number), str(number)) for number in range(1, len(passed) + 1, EVERY)]
    assert sum(died) > len(died) // 2, "most points are reached"
