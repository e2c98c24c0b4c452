"""Thousands of seeded trials of whole fleets under faults.

Source: design#promise-1; design#promise-2; design#promise-3; design#promise-8.

`RECONCILER_SOAK_SEEDS=FIRST:END` chooses others.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.soak.chaos import Trial
from tests.soak.copied_journals import CopiedJournalTrial
from tests.soak.shares import SharesTrial

pytestmark = [pytest.mark.soak, pytest.mark.timeout(24 * 3600)]


@pytest.mark.parametrize(("kind", "seeds"), [(Trial, "0:2000"), (SharesTrial, "0:500"), (CopiedJournalTrial, "0:100")])
def test_every_seed_converges_and_breaks_no_invariant(tmp_path: Path, kind: type[Trial], seeds: str) -> None:
    first, end = map(int, os.environ.get("RECONCILER_SOAK_SEEDS", seeds).split(":"))
    failed: list[str] = []
    faults, worlds = 0, Counter[str]()
    for seed in range(first, end):
        folder = tmp_path / str(seed)
        trial = kind(seed, folder)
        outcome = asyncio.run(_outcome(trial))
        if isinstance(outcome, BaseException):
            failed.append(f"seed {seed}: {outcome!r}")
        else:
            faults += outcome
        worlds += trial.struck
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{kind.__name__}: {end - first} seeds, {faults} faults struck, {len(failed)} violations, worlds {worlds}")
    assert not failed, "\n\n".join(failed)


async def _outcome(trial: Trial) -> int | BaseException:
    """Return the result of a trial, or its exception: the service may end with any."""
    (outcome,) = await asyncio.gather(trial.run(), return_exceptions=True)
    return outcome
