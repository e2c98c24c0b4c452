"""The progress of a commit in the words of forges, made from the counts of the state alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from reconciler.model.rollouts.progress import Paused, Progress, Skipped, StageDone, StageProgress
from reconciler.report.rollouts.words import state_words
from reconciler.stages.state import HealthWord, Lag, Step

DESCRIPTION_MAX: Final = 140
"""So many characters GitHub takes."""
_NAMED_MAX: Final = 3


class Verdict(StrEnum):
    """State of a commit status."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"


def commit_status(step: Step, source_error: str = "", rollouts: Iterable[Progress] = ()) -> tuple[Verdict, str]:
    """Return the commit status of the active revision, and its text.

    `source_error`: the error of reading the store; empty: none. `rollouts`: a commit that has not reached all stages is
    pending, whatever the clusters say of their own revisions; a paused one is a failure. A failed, held, conflicting,
    refused or degraded object is a failure; an unreachable cluster is pending.
    """
    said = f"{step.in_step} of {step.clusters} clusters in step"
    stages = [(found.rollout, stage) for found in rollouts if not found.is_done for stage in found.stages]
    paused = [f"{name} paused in {stage.name}" for name, stage in stages if isinstance(stage.state, Paused)]
    troubles = [*paused, *_troubles(step)]
    if step.errors or step.broken:
        verdict, words = Verdict.ERROR, [_store_words(step)]
    elif source_error:
        verdict, words = Verdict.ERROR, ["the store cannot be followed"]
    elif troubles:
        verdict, words = Verdict.FAILURE, troubles
    else:
        words = [*_under_way(stages), *_waits(step)]
        is_done = step.is_complete and not words
        verdict = Verdict.SUCCESS if is_done else Verdict.PENDING
    return verdict, _fitted("; ".join([said, *([", ".join(words)] if words else [])]))


def _store_words(step: Step) -> str:
    """`2 errors in the store`; of a file that breaks without an error of its own, that it cannot be read."""
    if step.errors:
        return _counted(step.errors, "error", "errors") + " in the store"
    return _counted(step.broken, "file", "files") + " of the store cannot be read"


def _troubles(step: Step) -> Iterator[str]:
    for lag in (Lag.FAILED, Lag.FOUGHT, Lag.REFUSED):
        if count := step.syncs.get(lag, 0):
            yield f"{count} {lag}"
    if step.waiting:
        yield f"{step.waiting} held"
    if count := step.healths.get(HealthWord.DEGRADED, 0):
        yield f"{count} degraded"


def _under_way(stages: Iterable[tuple[str, StageProgress]]) -> Iterator[str]:
    """The first stage of each rollout that is not done: `default: eu in progress, 1 of 4`."""
    told = set()
    for name, stage in stages:
        is_over = isinstance(stage.state, StageDone | Skipped)
        if name not in told and not is_over:
            told.add(name)
            yield f"{name}: {stage.name} {state_words(stage)}"


def _waits(step: Step) -> Iterator[str]:
    if step.away:
        more = ", …" if len(step.away) > _NAMED_MAX else ""
        yield f"away: {', '.join(step.away[:_NAMED_MAX])}{more}"
    if step.unread:
        yield _counted(step.unread, "kind", "kinds") + " not read"
    if step.unplaced:
        yield f"{step.unplaced} not placed as wanted"
    if count := step.syncs.get(Lag.FROZEN, 0):
        yield f"{count} frozen"
    if count := step.healths.get(HealthWord.PROGRESSING, 0):
        yield f"{count} progressing"
    if count := step.healths.get(HealthWord.MISSING, 0):
        yield f"{count} missing"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _fitted(text: str) -> str:
    return text if len(text) <= DESCRIPTION_MAX else f"{text[: DESCRIPTION_MAX - 1]}…"
