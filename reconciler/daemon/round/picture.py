"""The whole picture from partial rounds: what the last look at each identity left undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from msgspec.structs import replace

from reconciler.daemon.round.act import Result
from reconciler.engine import Round
from reconciler.model.observation import Member, Read
from reconciler.model.plan import Change, Manifest, Plan
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity
from reconciler.stages.plan import RIGHT_MISSING


def merged(
    before: Round | None,
    planned: Round,
    results: Iterable[Result],
    only: frozenset[Identity] | None,
    members: Mapping[str, Member] = MappingProxyType({}),
) -> Round:
    """The picture after a round: its own changes that are still due, and earlier ones of what it did not look at.

    So are those of what was under way in a member.
    """
    done = {(result.change.cluster, result.change.identity) for result in results if not result.error}
    due = tuple(
        change for change in planned.plan.changes if change.held or (change.cluster, change.identity) not in done
    )
    if before is None:
        return replace(planned, plan=_plan(planned.plan, due, planned.plan.problems))
    if only is None:
        going_on = tuple(change for change in before.plan.changes if _is_under_way(change, members))
        return replace(planned, plan=_plan(planned.plan, (*going_on, *due), planned.plan.problems))
    kept = tuple(
        change for change in before.plan.changes if change.identity not in only or _is_under_way(change, members)
    )
    # What is wrong with the store or with a whole cluster comes anew with every round.
    left = {identity: found for identity, found in before.problems.items() if identity not in only}
    # But what a list was refused is only known to rounds that list.
    refused = (problem for problem in before.plan.problems if problem.code == RIGHT_MISSING)
    problems = tuple(sorted({*planned.plan.problems, *refused, *chain(*left.values())}))
    plan = _plan(planned.plan, (*kept, *due), problems)
    plan = replace(plan, is_complete=before.plan.is_complete and planned.plan.is_complete)
    manifests = _manifests(before.manifests, planned.manifests, only)
    return replace(planned, plan=plan, manifests=manifests, problems=left | dict(planned.problems))


def without_made(picture: Round, results: Iterable[Result]) -> Round:
    """The picture after writes that ended later than their round."""
    made = {(result.change.cluster, result.change.identity) for result in results if not result.error}
    left = tuple(
        change for change in picture.plan.changes if change.held or (change.cluster, change.identity) not in made
    )
    return replace(picture, plan=replace(picture.plan, changes=left))


def _is_under_way(change: Change, members: Mapping[str, Member]) -> bool:
    member = members.get(change.cluster)
    return change.held is None and isinstance(member, Read) and change.identity in member.under_way


def _plan(plan: Plan, changes: tuple[Change, ...], problems: tuple[Problem, ...]) -> Plan:
    ordered = tuple(sorted(changes, key=lambda change: (change.identity, change.cluster, change.held or "")))
    return replace(plan, changes=ordered, waves=(), problems=problems)


def _manifests(
    before: Mapping[str, Mapping[Identity, Manifest]],
    now: Mapping[str, Mapping[Identity, Manifest]],
    only: frozenset[Identity],
) -> dict[str, Mapping[Identity, Manifest]]:
    found = dict(before)
    for cluster in before.keys() | now.keys():
        known, seen = before.get(cluster, {}), now.get(cluster, {})
        if seen or any(identity in known for identity in only):
            kept = dict(known)
            for identity in only:
                kept.pop(identity, None)
            found[cluster] = kept | dict(seen)
    return {cluster: found.get(cluster, {}) for cluster in sorted(before.keys() | now.keys())}
