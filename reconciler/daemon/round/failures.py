"""Changes that were tried and not made: each stays a failure, with its error, until it is made or no longer due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from reconciler.daemon.round.act import Result
from reconciler.engine import Round
from reconciler.model.problem import NOWHERE, Problem, Severity, with_problems
from reconciler.model.refs import Identity
from reconciler.stages.state import Copy, Failed

Failures = Mapping[tuple[str, Identity], Failed]
"""(cluster, identity) to the error of the API server or of the connection."""

Faults = Mapping[tuple[str, Identity], Problem]
"""Those of them that are faults of the program."""


def failures_after(
    before: Failures, picture: Round, results: Iterable[Result], fought: Collection[Copy] = ()
) -> Failures:
    """Return the failures after a round. `picture`: pending changes after it, over the whole fleet (held ones wait).

    `fought`: copies in conflict back-off, which explains more than one altered write.
    """
    found = dict(before)
    for copy, result in _by_copy(results):
        found.pop(copy, None)
        if result.error and not (result.altered and copy in fought):
            found[copy] = Failed(result.error, is_altered=bool(result.altered))
    if not found:
        return {}
    due = {(change.cluster, change.identity) for change in picture.plan.changes if change.held is None}
    return {copy: failed for copy, failed in found.items() if copy in due}


def with_holders(planned: Round, held_elsewhere: Mapping[str, str]) -> Round:
    """Return the round with a problem for each cluster owned by a copy of the journal: nothing is written there.

    `held_elsewhere`: by cluster the owner and the remedy.
    """
    found = {
        Problem(source=NOWHERE, code="fleet-held-elsewhere", message=why, severity=Severity.ERROR, cluster=cluster)
        for cluster, why in held_elsewhere.items()
    }
    if not found:
        return planned
    return replace(planned, plan=replace(planned.plan, problems=with_problems(planned.plan.problems, found)))


def _by_copy(results: Iterable[Result]) -> Iterable[tuple[Copy, Result]]:
    return (((result.change.cluster, result.change.identity), result) for result in results)


def faults_after(before: Faults, failures: Failures, results: Iterable[Result]) -> Faults:
    """The faults among the failures after a round."""
    found = dict(before)
    for copy, result in _by_copy(results):
        found.pop(copy, None)
        if result.fault is not None:
            found[copy] = result.fault
    return {copy: problem for copy, problem in found.items() if copy in failures}
