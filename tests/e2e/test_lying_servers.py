"""A fleet one of whose API servers lies: a sample of the seeds that `make soak` tries by the thousand.

A seed is repeated with `plan_beside_a_liar(folder, range(seed, seed + 1))`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.soak.lies import plan_beside_a_liar, serve_beside_a_liar

SEEDS = range(0, 24)


def test_no_answer_ends_a_plan_and_the_other_cluster_is_planned_for(tmp_path: Path) -> None:
    found = asyncio.run(plan_beside_a_liar(tmp_path, SEEDS))
    assert not found.faults, found.report()
    assert 0 < found.unread < len(SEEDS), "lies are found out, and do not end everything"


def test_a_service_goes_on_beside_a_liar_and_heals_it_in_the_end(tmp_path: Path) -> None:
    missed = asyncio.run(serve_beside_a_liar(tmp_path, SEEDS))
    assert not missed, "\n".join(missed)
