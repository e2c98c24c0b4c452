"""A hundred thousand seeds of API servers that lie. Source: design#promise-7.

`RECONCILER_SOAK_LIES=FIRST:END` chooses others.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.soak.lies import plan_beside_a_liar, serve_beside_a_liar

pytestmark = [pytest.mark.soak, pytest.mark.timeout(24 * 3600)]

_BATCH = 500
"""So many plans share one fleet."""


def test_no_answer_ends_a_plan(tmp_path: Path) -> None:
    first, end = map(int, os.environ.get("RECONCILER_SOAK_LIES", "0:100000").split(":"))
    failed: list[str] = []
    unread = 0
    for begin in range(first, end, _BATCH):
        found = asyncio.run(plan_beside_a_liar(tmp_path / str(begin), range(begin, min(begin + _BATCH, end))))
        unread += found.unread
        failed += [found.report()] if found.faults else []
    print(f"{end - first} plans beside a lying server, {unread} without it, {len(failed)} batches with violations")
    assert not failed, "\n".join(failed)


def test_no_answer_ends_a_service(tmp_path: Path) -> None:
    first, end = map(int, os.environ.get("RECONCILER_SOAK_LIES", "0:100000").split(":"))
    missed: list[str] = []
    for begin in range(first, end, _BATCH):
        seeds = range(begin, min(begin + _BATCH, end))
        missed += asyncio.run(serve_beside_a_liar(tmp_path / f"service-{begin}", seeds))
    print(f"{end - first} commits beside a lying server, {len(missed)} of them missed by the others")
    assert not missed, "\n".join(missed)
