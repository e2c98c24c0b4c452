"""Tell of clusters where a copy of the journal holds the fleet: nothing is written there, whatever is due."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.engine import Round
from reconciler.model.problem import NOWHERE, Problem, Severity, with_problems


def with_holders(planned: Round, held_elsewhere: Mapping[str, str]) -> Round:
    """The round with a problem for each of these clusters, which says who holds the fleet and what to do."""
    if not held_elsewhere:
        return planned
    found = {
        Problem(source=NOWHERE, code="fleet-held-elsewhere", message=why, severity=Severity.ERROR, cluster=cluster)
        for cluster, why in held_elsewhere.items()
    }
    problems = with_problems(planned.plan.problems, found)
    return replace(planned, plan=replace(planned.plan, problems=problems))
