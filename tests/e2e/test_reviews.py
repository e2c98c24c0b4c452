"""A pull-request check shows of a commit exactly what `apply` then writes. Source: design#one-plan.

A longer run by hand: `RECONCILER_REVIEW_SEEDS=100:200 RECONCILER_REVIEW_COMMITS=30 pytest tests/e2e/test_reviews.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.reviews import ReviewWalk

_FIRST, _END = map(int, os.environ.get("RECONCILER_REVIEW_SEEDS", "206:207").split(":"))
_COMMITS = int(os.environ.get("RECONCILER_REVIEW_COMMITS", "8"))


@pytest.mark.parametrize("seed", range(_FIRST, _END))
def test_random_commits_do_what_their_review_says(tmp_path: Path, seed: int) -> None:
    walk = ReviewWalk(seed, tmp_path)
    assert not walk.walk(_COMMITS), "\n".join(walk.faults)
    assert walk.reviewed > 2, "some commits change something"
