"""Warnings of runs that are not begun. Source: design#jobs: what cannot be done is said; design#runs-once; ADR 24."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from reconciler.interpreters.jobs.job import COMPLETIONS
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import Member, Read
from reconciler.model.policy import Division
from reconciler.model.problem import NOWHERE, Problem, Severity
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.comparison import Scene
from reconciler.stages.decision import RUNS_ONCE, Decision, lacking

RUNS_ELSEWHERE: Final = "runs-elsewhere"
"""Code of what may run in a cluster of another process: the placement that is recorded of it stays."""

Ledger = Mapping[str, Mapping[Identity, AppliedRow]]


def runs_elsewhere(
    scene: Scene, identity: Identity, target: Collection[str], in_force: Collection[str]
) -> tuple[Problem, ...]:
    """A warning where a run stays, as far as is known, in a cluster of another process.

    `target`: where it is to be; `in_force`: where it is or may come now.
    """
    where = ", ".join(sorted(scene.elsewhere & set(in_force) - set(target)))
    if not where or identity[:2] not in RUNS_ONCE:
        return ()
    template = scene.decision.fleet.templates.get(identity)
    message = (
        f"{identity} was placed in {where}, where another process applies, and may run there: it is not begun in "
        f"{', '.join(sorted(target)) or 'another cluster'}; to run it once more, give it another name"
    )
    source = template.source if template is not None else NOWHERE
    return (Problem(source=source, code=RUNS_ELSEWHERE, message=message, severity=Severity.WARNING),)


def lack_of_completions(
    decision: Decision, identity: Identity, members: Mapping[str, Member], ledger: Ledger
) -> tuple[Problem, ...]:
    """A warning when parts that are there, and those that are to come, have fewer completions than the template."""
    template, policy = decision.fleet.templates.get(identity), decision.policies.get(identity)
    if template is None or policy is None or policy.placement.scheduling.division is Division.DUPLICATED:
        return ()
    binding = decision.bindings[identity]
    fixed: dict[str, int] = {}
    elsewhere = 0
    for cluster in {*members, *ledger}:
        count = _completions_in(template.identity, members.get(cluster), ledger.get(cluster, {}))
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


def _completions_in(identity: Identity, member: Member | None, rows: Mapping[Identity, AppliedRow]) -> int | None:
    """Completions of the part in a cluster as it is there; where that is not known, or it has ended, as it was sent."""
    row = rows.get(identity)
    live = member.objects.get(identity) if isinstance(member, Read) else None
    if live is not None:
        return _count(live.body)
    if row is not None and (row.finished or not isinstance(member, Read)):
        return _count(row.recorded)
    return None


def _count(body: JsonObject | None) -> int | None:
    found = dig(body, *COMPLETIONS) if body is not None else None
    return found if isinstance(found, int) else None
