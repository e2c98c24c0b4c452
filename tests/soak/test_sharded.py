"""Seeded trials of sharded fleets in an unkind world. Source: design#shards; ADR 20; ADR 22.

`RECONCILER_SOAK_SEEDS=FIRST:END` chooses others.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.soak.sharded import Trial


@pytest.mark.soak
@pytest.mark.timeout(24 * 3600)
def test_every_seed_of_a_sharded_fleet_converges_and_breaks_no_rule(tmp_path: Path) -> None:
    first, end = map(int, os.environ.get("RECONCILER_SOAK_SEEDS", "0:40").split(":"))
    failed: list[str] = []
    for seed in range(first, end):
        folder = tmp_path / str(seed)
        try:
            Trial(seed, folder, steps=40).run()
        except AssertionError as error:
            failed.append(f"seed {seed}: {error}")
        shutil.rmtree(folder, ignore_errors=True)
    assert not failed, "\n\n".join(failed)


@pytest.mark.timeout(300)
def test_a_few_steps_of_one_seed(tmp_path: Path) -> None:
    Trial(1, tmp_path / "trial", steps=4).run()
