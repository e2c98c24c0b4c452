"""Hooks under kill -9 after everything that outlives the service: none runs twice for a release, none is left out.

Source: ADR 26.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.test_hooks import both_releases, wanted

pytestmark = pytest.mark.soak

EVERY = int(os.environ.get("HOOK_POINTS_EVERY", "1"))
"""Of so many points one is tried."""
AT_ONCE = 4
"""So many services are killed side by side: most of the time each waits for its cluster."""


@pytest.mark.timeout(0)
def test_no_crash_runs_a_hook_twice(tmp_path: Path) -> None:
    trace = tmp_path / "points"
    both_releases(tmp_path / "undisturbed", RECONCILER_FAIL_POINT_LOG=str(trace))
    # A point before something finds what the one after the last thing left.
    lines = [line for line in trace.read_text().splitlines() if " after " in line][::EVERY]

    def killed(line: str) -> str:
        """Return what went wrong after a kill at this point, if anything did."""
        number = line.partition(" ")[0]
        clusters = both_releases(tmp_path / number, RECONCILER_FAIL_POINT=number)
        is_right = clusters.words() == wanted("nginx:1", "nginx:2") and set(Counter(clusters.turns).values()) == {1}
        return "" if is_right else f"{line}: {clusters.words()}"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert [wrong for wrong in pool.map(killed, lines) if wrong] == []
