"""A seeded sample of the crash matrix, on embedded clusters; `make soak` runs the whole. Source: design#promise-4."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.soak.crashes import Record, trial, undisturbed

SEED = 20261121
SAMPLE = 4


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("index", range(SAMPLE))
def test_a_crash_loses_and_repeats_nothing(tmp_path: Path, expected: Record, index: int) -> None:
    # How many rounds a run takes differs, and a point near the end of one may lie beyond the end of another.
    passed = list(enumerate(expected.points, 1))[: len(expected.points) * 3 // 4]
    writes = [number for number, name in passed if "write to a member" in name]
    commits = [number for number, name in passed if "journal" in name]
    point = random.Random(SEED + index).choice((writes, commits)[index % 2])
    assert trial(tmp_path, expected, point, commit_while_down=index >= SAMPLE // 2) == 1
