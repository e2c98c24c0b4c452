"""The status of a commit at forges, by the counts of the state."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.notify.commit_statuses import DESCRIPTION_MAX, commit_status
from reconciler.state import HealthWord, Lag, RevisionStep
from tests.fakes.rollouts import AWAITED, DONE, PAUSED

ALL = Lag.SYNCED
CASES: tuple[tuple[str, dict[str, Any], str, str, str], ...] = (
    ("all", {"in_step": 42}, "", "success", "42 of 42 clusters in step"),
    ("some", {"in_step": 12, "syncs": {Lag.PENDING: 9}}, "", "pending", "12 of 42 clusters in step"),
    ("away", {"in_step": 41, "away": ("m7",)}, "", "pending", "41 of 42 clusters in step; away: m7"),
    ("many away", {"in_step": 38, "away": ("a", "b", "c", "d")}, "", "pending",
     "38 of 42 clusters in step; away: a, b, c, …"),
    ("rolls out", {"in_step": 42, "healths": {HealthWord.PROGRESSING: 3}}, "", "pending",
     "42 of 42 clusters in step; 3 progressing"),
    ("failed", {"in_step": 41, "syncs": {Lag.FAILED: 2, Lag.REFUSED: 1}}, "", "failure",
     "41 of 42 clusters in step; 2 failed, 1 refused"),
    ("held by a person", {"in_step": 41, "syncs": {Lag.HELD: 5}, "waiting": 2}, "", "failure",
     "41 of 42 clusters in step; 2 held"),
    ("a move", {"in_step": 41, "syncs": {Lag.HELD: 5}}, "", "pending", "41 of 42 clusters in step"),
    ("fought", {"in_step": 41, "syncs": {Lag.FOUGHT: 1}}, "", "failure", "41 of 42 clusters in step; 1 fought"),
    ("degraded", {"in_step": 42, "healths": {HealthWord.DEGRADED: 1}}, "", "failure",
     "42 of 42 clusters in step; 1 degraded"),
    ("broken", {"in_step": 42, "errors": 1}, "", "error", "42 of 42 clusters in step; 1 error in the store"),
    ("not readable", {"in_step": 42, "broken": 2}, "", "error",
     "42 of 42 clusters in step; 2 files of the store cannot be read"),
    ("a kind", {"in_step": 41, "unread": 1}, "", "pending", "41 of 42 clusters in step; 1 kind not read"),
    ("placed nowhere", {"in_step": 42, "unplaced": 2}, "", "pending",
     "42 of 42 clusters in step; 2 not placed as wanted"),
    ("not followed", {"in_step": 42}, "boom", "error", "42 of 42 clusters in step; the store cannot be followed"),
    ("no cluster", {"clusters": 0, "in_step": 0}, "", "pending", "0 of 0 clusters in step"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "source_error", "verdict", "words"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_table(given: dict[str, Any], source_error: str, verdict: str, words: str) -> None:
    step = RevisionStep(**{"revision": "c0ffee", "clusters": 42, **given})
    assert commit_status(step, source_error) == (verdict, words)


def test_words_fit_what_forges_take() -> None:
    step = RevisionStep(revision="c0ffee", clusters=3, in_step=0, away=("x" * 100, "y" * 100, "z" * 100))
    assert len(commit_status(step)[1]) == DESCRIPTION_MAX


def test_a_commit_that_has_not_reached_all_stages_is_pending() -> None:
    """Each cluster is in step with its own revision, which is not yet that of the commit."""
    step = RevisionStep(revision="c0ffee", clusters=3, in_step=3)
    assert commit_status(step, "", (AWAITED,)) == (
        "pending",
        "3 of 3 clusters in step; default: canary done; the next stage needs an approval",
    )
    assert commit_status(step, "", (PAUSED,)) == ("failure", "3 of 3 clusters in step; default paused in canary")
    assert commit_status(step, "", (DONE,)) == ("success", "3 of 3 clusters in step")
