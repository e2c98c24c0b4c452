"""A hundred clusters with a thousand objects each: what the service takes at its first start, at rest, and at the next.

`RECONCILER_SOAK_FLEET=50x400` chooses another size. Source: design#promise-6; docs/reference/reliability.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.large_fleet import Large, held_mib, large_fleet, most_mib

CLUSTERS, OBJECTS = (int(part) for part in os.environ.get("RECONCILER_SOAK_FLEET", "100x1000").split("x"))
START_MAX_MIB = 512.0
REST_MAX_MIB = 400.0
"""The goal is 250; measured are 366 after the first start and 302 after the second."""
TIMEOUT_S = 3600.0

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3 * TIMEOUT_S)]


def test_the_service_fits_its_unit_with_a_large_fleet(tmp_path: Path) -> None:
    with large_fleet(tmp_path, Large(CLUSTERS, OBJECTS)) as fleet:
        found: dict[str, tuple[float, float]] = {}
        for which in ("first", "second"):
            fleet.daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does
            fleet.wait_written(fleet.large.copies, TIMEOUT_S)
            fleet.wait_at_rest(TIMEOUT_S)
            found[which] = most_mib(fleet.daemon.pid), held_mib(fleet.daemon.pid)
            print(f"\n{which} start: {found[which][0]:.0f} MiB at the peak, {found[which][1]:.0f} at rest")
            assert fleet.daemon.stop() == 0
        assert max(most for most, _ in found.values()) < START_MAX_MIB, found
        assert max(rest for _, rest in found.values()) < REST_MAX_MIB, found
