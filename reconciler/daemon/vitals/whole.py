"""What is shown of a whole fleet with shards: this process's own last round, put together with what the others tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.daemon.vitals.shown import Shown
from reconciler.model.problem import Problem, Severity, Source, with_problems
from reconciler.report.views.sight import is_cluster_in_step
from reconciler.stages.shards import ToldProblem
from reconciler.stages.state import FleetState, Others, whole_of

_SEVERITIES: Final[Mapping[str, Severity]] = {str(severity): severity for severity in Severity}


class Whole:
    """Remembers what was put together last, so that one moment is one value."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self._made_of: tuple[Shown, Others] | None = None
        self._made: Shown | None = None
        self._is_in_step: bool | None = None
        self._since = ""

    def of(self, shown: Shown, others: Others) -> Shown:
        """The moment with the clusters of all shards in it."""
        made_of = self._made_of
        if made_of is None or self._made is None or made_of[0] is not shown or made_of[1] is not others:
            self._made = self._put_together(shown, others)
            self._made_of = (shown, others)
        return self._made

    def _put_together(self, shown: Shown, others: Others) -> Shown:
        picture = shown.picture
        state, plan = whole_of(picture.state, others), picture.round.plan
        digests = (told.picture.held_digest for told in others.told.values() if told.picture and not told.why)
        plan = replace(
            plan,
            problems=with_problems(plan.problems, told_problems(others, state)),
            # All shards hold what is too much over the fleet with the same one.
            held_digest=plan.held_digest or next(filter(None, digests), ""),
            is_complete=plan.is_complete and all(found.why_away is None for found in state.clusters.values()),
        )
        whole = replace(picture, state=state, round=replace(picture.round, plan=plan), others=others)
        is_in_step = all(map(is_cluster_in_step, state.clusters.values()))
        if is_in_step is not self._is_in_step:
            # Of before this process looked, its own journal knows at least that it was so.
            at = max(picture.time, others.at)
            self._is_in_step, self._since = is_in_step, at if self._since else max(shown.since, others.at)
        return replace(shown, picture=whole, since=self._since)


def told_problems(others: Others, state: FleetState) -> Iterator[Problem]:
    """What other shards tell of their clusters, as far as it is known to be so still."""
    for told in others.told.values():
        if told.picture is not None and not told.why:
            yield from (_problem(row) for row in told.picture.problems if _is_of_theirs(row, told.clusters, state))


def _is_of_theirs(row: ToldProblem, clusters: Collection[str], state: FleetState) -> bool:
    """Whether a problem is about a cluster of who tells it, or about none: nobody speaks for others."""
    there = state.clusters.get(row.cluster)
    return not row.cluster or (row.cluster in clusters and there is not None and there.is_told)


def _problem(row: ToldProblem) -> Problem:
    return Problem(
        source=Source(row.file, row.line),
        path=row.path,
        code=row.code,
        message=row.message,
        severity=_SEVERITIES.get(row.severity, Severity.ERROR),
        cluster=row.cluster,
    )
