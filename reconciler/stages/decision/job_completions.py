"""The share of spec.completions that each cluster's part of a divided Job runs.

Source: design#jobs: split at creation and fixed; Karmada: completions by Webster over the assigned parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.interpreters.jobs.job import COMPLETIONS, PARALLELISM
from reconciler.model.binding import TargetCluster
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.placement import webster

WORK_QUEUE: Final = -1
"""Instead of a share: the part was created with parallelism alone, which cannot be changed."""


def fixed_share(part: JsonObject, *, is_single_run: bool) -> int | None:
    """Return the completions that a part of a Job was created with; None: they are not fixed.

    `is_single_run`: of the template. Earlier versions sent such a Job with parallelism alone.
    """
    count = dig(part, *COMPLETIONS)
    if isinstance(count, int):
        return count
    return WORK_QUEUE if is_single_run and dig(part, *PARALLELISM) is not None else None


def has_completions(body: JsonObject) -> bool:
    """Return whether a Job sets how many of its pods have to succeed."""
    total = dig(body, *COMPLETIONS)
    return isinstance(total, int) and not isinstance(total, bool)


def lacking(body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int], elsewhere: int) -> int:
    """Return how many completions of a divided Job no part has.

    `fixed`: as `completions` takes it. `elsewhere`: those of parts that are not among the targets, ended ones that are
    no longer there included.
    """
    if not has_completions(body):
        return 0
    total: int = dig(body, *COMPLETIONS)
    return max(0, total - elsewhere - sum(completions(body, targets, fixed).values()))


def completions(body: JsonObject, targets: tuple[TargetCluster, ...], fixed: Mapping[str, int]) -> dict[str, int]:
    """Completions per cluster; empty when the Job has none to split.

    `fixed`: what live parts were created with, which API servers refuse to change; the other clusters share the rest.
    """
    if not has_completions(body):
        return {}
    total: int = dig(body, *COMPLETIONS)
    votes = {target.cluster: target.replicas or 0 for target in targets if target.cluster not in fixed}
    if not any(votes.values()):
        # Scaled to 0: the share counts later, and a part with 0 completions would end at once.
        votes = dict.fromkeys(votes, 1)
    return {**webster(max(0, total - sum(fixed.values())), votes), **fixed}
