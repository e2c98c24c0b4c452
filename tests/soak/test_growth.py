"""Two thousand commits end in about the memory that two hundred end in.

The service of its own process follows a Git store with three embedded clusters. `RECONCILER_SOAK_COMMITS` chooses
another number. Source: design#promise-8.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.growth import growth_over

COMMITS = int(os.environ.get("RECONCILER_SOAK_COMMITS", "2000"))
GROWTH_MAX_MIB = 8.0
"""Measured are 6.0 over 1,800 commits, 2.7 KiB for each; the goal, 2, is missed (docs/reference/reliability.md)."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(COMMITS * 3 + 600)]


def test_the_service_does_not_grow_with_its_commits(tmp_path: Path) -> None:
    found = growth_over(tmp_path, first=200, last=COMMITS)
    print(f"\n{found}")
    assert found.growth_mib < GROWTH_MAX_MIB, str(found)
