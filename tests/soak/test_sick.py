"""Clusters do not wait for each other. Source: design#promise-7; ADR 14."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.soak.sick import STATES, measure

LATER_MAX_S = 1.0
"""So much later than without a sick cluster the others may have a commit."""
END_MAX_S = 20.0

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_no_cluster_waits_for_a_sick_one_and_neither_does_the_end_of_the_service(tmp_path: Path) -> None:
    found = {state: asyncio.run(measure(tmp_path / str(n), fall)) for n, (state, fall) in enumerate(STATES.items())}
    print("", *(f"{state}: {measured}" for state, measured in found.items()), sep="\n")
    usual_s = max(found["nobody is sick"].commits_s)
    late = {state: measured for state, measured in found.items() if max(measured.commits_s) > usual_s + LATER_MAX_S}
    assert not late
    assert {measured.code for measured in found.values()} == {0}
    assert max(measured.end_s for measured in found.values()) < END_MAX_S
