"""Dry runs by server-side apply, where the three-way comparison is in doubt.

Source: design#dry-run: on request, and if engine T is in doubt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.plan import Action, Cause, Change, Engine, FieldChange, HeldBy, Hold
from reconciler.api.problem import Problem, with_problems
from reconciler.api.refs import GVK
from reconciler.controller.reading.members import told_fault
from reconciler.diff import (
    Comparer,
    as_replacement,
    dry_run_changes,
    is_write_needed,
    overall_cause,
    refused_beside,
    refused_in_place,
)
from reconciler.errors import InvalidObject, MemberClusterError, RefusedField
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kube.client import MemberCluster
from reconciler.ownership import field_manager, replicas_path
from reconciler.planner import Round, waves_without

_IN_FLIGHT = 16


async def dry_run(
    planned: Round,
    members: Mapping[str, MemberCluster],
    snapshot: FleetSnapshot,
    is_asked_first: Callable[[Change], bool] = lambda change: False,
    *,
    every: bool = False,
    within_s: float | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Round:
    """Return the round with its doubtful updates evaluated by the API servers; with `every`, all updates.

    `is_asked_first`: other updates to ask for, since the last write failed: such a one may not be made in place. It is
    otherwise unchanged. An update without effect leaves the plan, unless the cluster would alter the sent body: such an
    update is due, and tried as any other (design#altered-writes). A refused one is held, with the reason. If a dry run
    is not allowed or not answered, or causes a fault of ours, the comparison stands. `within_s`: a kind of a cluster
    that lets one of them wait longer is asked no more; None: the client's own deadlines. `members`: those that may be
    asked.
    """
    slots = asyncio.Semaphore(_IN_FLIGHT)
    silent: set[tuple[str, GVK]] = set()

    async def ask(change: Change) -> tuple[Change | None, Problem | None]:
        if change.action is not Action.UPDATE or change.held:
            return change, None
        is_doubtful = every or change.engine is Engine.SERVER_SIDE
        if not is_doubtful and not is_asked_first(change):
            return change, None
        async with slots:
            if change.cluster not in members or (change.cluster, change.gvk) in silent:
                return change, None
            progress()
            try:
                async with asyncio.timeout(within_s):
                    answer = await _ask(change, members[change.cluster], snapshot, planned)
            except TimeoutError:
                silent.add((change.cluster, change.gvk))
                return change, None
            except Exception as error:
                told_fault(change.cluster, error, change.identity)
                return change, None
        is_replacing = answer[0] is not None and answer[0].action is Action.REPLACE
        return answer if is_doubtful or is_replacing else (change, None)

    answers = await asyncio.gather(*(ask(change) for change in planned.plan.changes))
    kept = [index for index, (change, _) in enumerate(answers) if change is not None]
    position = {index: at for at, index in enumerate(kept)}
    changes = tuple(change for change, _ in answers if change is not None)
    waves = tuple(tuple(position[index] for index in wave if index in position) for wave in planned.plan.waves)
    problems = dict(planned.problems)
    for change, problem in answers:
        if change is not None and problem is not None:
            problems[change.identity] = (*problems.get(change.identity, ()), problem)
    plan = replace(
        planned.plan,
        changes=changes,
        waves=waves_without(waves, changes),
        problems=with_problems(planned.plan.problems, *problems.values()),
    )
    return replace(planned, plan=plan, problems=problems)


async def _ask(
    change: Change, member: MemberCluster, snapshot: FleetSnapshot, planned: Round
) -> tuple[Change | None, Problem | None]:
    seen = snapshot.members[change.cluster]
    live = seen.objects.get(change.identity) if isinstance(seen, Read) else None
    assert change.manifest is not None, "an update has a manifest"
    if live is None:
        return change, None
    manager = field_manager(snapshot.fleet.settings.name)
    comparer = Comparer(planned.schedule, snapshot)
    schema = comparer.schemas.of(change.gvk)
    try:
        result = await member.apply(
            change.gvk,
            change.identity.namespace,
            change.identity.name,
            change.manifest,
            manager=manager,
            force=True,
            uid=live.uid,
            dry_run=True,
        )
    except InvalidObject as error:
        said = error.causes or (RefusedField("", "", error.message),)
        if (at := refused_in_place(said, schema)) is not None:
            path = replicas_path(change.identity, snapshot.interpreters)
            replacing = as_replacement(change, at, path)
            return replacing, _would_be_refused(change, error) if replacing.held else None
        if beside := refused_beside(change.in_the_way, [cause.field for cause in error.causes]):
            return _without(change, beside), None
        # The dry run does not cover fields that are taken over first, and that may be the cause of its refusal.
        return (change, None) if change.removed_paths else _refused(change, error)
    except MemberClusterError:
        return change, None
    fields = dry_run_changes(live.body, result.body, manager=manager, schema=schema, desired=change.manifest)
    if not is_write_needed(fields) and not change.removed_paths:
        return (change if comparer.altered(change, result) else None), None
    fields = _with_what_was_told(fields, change)
    return replace(change, fields=fields, cause=overall_cause(fields), engine=Engine.SERVER_SIDE), None


def _with_what_was_told(answered: tuple[FieldChange, ...], change: Change) -> tuple[FieldChange, ...]:
    """Return the fields of a dry run with the causes of the comparison, and the fields taken over before."""
    told = {field.path: field for field in change.fields}
    fields = [
        replace(field, cause=told[field.path].cause)
        if field.path in told and field.cause is not Cause.SIDE_EFFECT
        else field
        for field in answered
    ]
    shown = {field.path for field in fields}
    fields += [told[path] for path in change.removed_paths if path in told and path not in shown]
    return tuple(sorted(fields, key=lambda field: field.path))


def _without(change: Change, entries: tuple[FieldChange, ...]) -> Change:
    """The change that takes entries of others away, too. Source: design#replaced-entries."""
    paths = (*change.removed_paths, *(entry.path for entry in entries))
    fields = sorted((*change.fields, *entries), key=lambda field: field.path)
    engine = Engine.SERVER_SIDE
    return replace(change, fields=tuple(fields), removed_paths=tuple(sorted(paths)), in_the_way=(), engine=engine)


def _refused(change: Change, error: InvalidObject) -> tuple[Change, Problem]:
    hold = Hold(HeldBy.OTHERS, "the API server would refuse it")
    return replace(change, hold=hold), _would_be_refused(change, error)


def _would_be_refused(change: Change, error: InvalidObject) -> Problem:
    return Problem(
        source=change.source,
        code="refused-by-api-server",
        message=f"{change.identity} would be refused: {error.message}",
        cluster=change.cluster,
    )
