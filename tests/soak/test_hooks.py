"""Hooks under kill -9 at every point that the service passes: none runs twice for a release, none is left out.

Source: ADR 26.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.test_hooks import both_releases, wanted

pytestmark = pytest.mark.soak

EVERY = int(os.environ.get("HOOK_POINTS_EVERY", "1"))
"""Of so many points one is tried."""


@pytest.mark.timeout(0)
def test_no_crash_runs_a_hook_twice(tmp_path: Path) -> None:
    trace = tmp_path / "points"
    both_releases(tmp_path / "undisturbed", RECONCILER_FAIL_POINT_LOG=str(trace))
    for line in trace.read_text().splitlines()[::EVERY]:
        number = line.partition(" ")[0]
        clusters = both_releases(tmp_path / number, RECONCILER_FAIL_POINT=number)
        assert clusters.words() == wanted("nginx:1", "nginx:2"), line
        assert set(Counter(clusters.turns).values()) == {1}, line
