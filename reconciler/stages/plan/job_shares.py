"""Warnings of runs that are not begun. Source: design#jobs; design#runs-once; ADR 24."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from reconciler.interpreters.jobs.job import COMPLETIONS
from reconciler.model.observation import Read
from reconciler.model.policy import Division
from reconciler.model.problem import NOWHERE, Problem, Severity
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.decision import RUNS_ONCE, Decision, lacking
from reconciler.stages.fleet_snapshot import FleetSnapshot

RUNS_ELSEWHERE: Final = "runs-elsewhere"
"""Code of objects that may run in a cluster of another process: their recorded placement stays."""


def runs_elsewhere(
    decision: Decision, snapshot: FleetSnapshot, identity: Identity, target: Collection[str], in_force: Collection[str]
) -> tuple[Problem, ...]:
    """A warning where a run stays, as far as is known, in a cluster of another process.

    `target`: where it is to be; `in_force`: where it is or may come now.
    """
    where = ", ".join(sorted(snapshot.elsewhere & set(in_force) - set(target)))
    if not where or identity[:2] not in RUNS_ONCE:
        return ()
    template = decision.fleet.templates.get(identity)
    message = (
        f"{identity} was placed in {where}, where another process applies, and may run there: it is not begun in "
        f"{', '.join(sorted(target)) or 'another cluster'}; to run it once more, give it another name"
    )
    source = template.source if template is not None else NOWHERE
    return (Problem(source=source, code=RUNS_ELSEWHERE, message=message, severity=Severity.WARNING),)


def lack_of_completions(decision: Decision, identity: Identity, snapshot: FleetSnapshot) -> tuple[Problem, ...]:
    """A warning when parts that are there, and those that are to come, have fewer completions than the template."""
    template, policy = decision.fleet.templates.get(identity), decision.policies.get(identity)
    if template is None or policy is None or policy.placement.scheduling.division is Division.DUPLICATED:
        return ()
    binding = decision.bindings[identity]
    fixed: dict[str, int] = {}
    elsewhere = 0
    for cluster in {*snapshot.members, *snapshot.journal.ledger}:
        count = _completions_in(template.identity, cluster, snapshot)
        if count is not None and cluster in binding.clusters:
            fixed[cluster] = count
        elif count is not None:
            elsewhere += count
    lack = lacking(template.body, binding.targets, fixed, elsewhere)
    if not lack:
        return ()
    total = dig(template.body, *COMPLETIONS)
    where = ", ".join(sorted(fixed)) or "no cluster"
    message = (
        f"{template.identity}: {lack} of its {total} completions run nowhere: those of the parts in {where} are fixed; "
        "give the Job another name to divide it anew, or another Job the rest"
    )
    found = Problem(
        source=template.source,
        path="spec.completions",
        code="completions-lost",
        message=message,
        severity=Severity.WARNING,
    )
    return (found,)


def _completions_in(identity: Identity, cluster: str, snapshot: FleetSnapshot) -> int | None:
    """Completions of the part in a cluster as it is there; where that is not known, or it has ended, as it was sent."""
    row, live = snapshot.journal.row(cluster, identity), snapshot.live(cluster, identity)
    if live is not None:
        return _count(live.body)
    if row is not None and (row.finished or not isinstance(snapshot.members.get(cluster), Read)):
        return _count(row.recorded)
    return None


def _count(body: JsonObject | None) -> int | None:
    found = dig(body, *COMPLETIONS) if body is not None else None
    return found if isinstance(found, int) else None
