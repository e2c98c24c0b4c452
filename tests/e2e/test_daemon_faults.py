"""A few seeds of the fault trials; `make soak` runs thousands. A seed is repeated with `Trial(seed, folder).run()`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.soak.chaos import Trial
from tests.soak.copied_journals import CopiedJournalTrial
from tests.soak.shares import SharesTrial

SEEDS = (0, 4, 8, 19, 44)
"""All unkind worlds strike in them, but for starved nodes, which strike in `SHARES`. 0 and 4 found a mistake."""
SHARES = (1, 4, 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_under_faults_comes_to_rest_as_the_store_says(tmp_path: Path, seed: int) -> None:
    asyncio.run(Trial(seed, tmp_path).run())


@pytest.mark.parametrize("seed", SHARES)
def test_replicas_that_serve_are_never_taken_away_before_others_serve(tmp_path: Path, seed: int) -> None:
    trial = SharesTrial(seed, tmp_path)
    asyncio.run(trial.run())
    assert trial.judge.falls, "nothing was ever taken away"


def test_a_copied_journal_writes_nothing_until_the_fleet_is_taken_over_with_it(tmp_path: Path) -> None:
    asyncio.run(CopiedJournalTrial(0, tmp_path).run())
