"""Questions to the API servers about a plan: dry runs of updates, and the contents of what is deleted.

Dry runs are by server-side apply, on request, or if engine T is in doubt. Source: design#dry-run.

The contents are the objects of a deleted definition, or in a deleted Namespace; not those with an owner, nor what every
Namespace has. Source: docs/concepts/deletion.md; Kubernetes on CustomResourceDefinitions and on Namespaces.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.content import dig
from reconciler.api.fleet import FleetSettings
from reconciler.api.plan import Action, Cause, Change, Engine, HeldBy, Hold
from reconciler.api.problem import Problem, error, warning, with_problems
from reconciler.api.refs import GVK, Identity
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import log_read_fault
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
from reconciler.ownership import FLEET_LABEL, field_manager, fleet_names, is_terminating, replicas_path, terminating
from reconciler.planner import Round, waves_without

_DRY_RUNS = 16


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
    slots = asyncio.Semaphore(_DRY_RUNS)
    silent: set[tuple[str, GVK]] = set()

    async def ask(change: Change) -> tuple[Change | None, Problem | None]:
        is_doubtful = every or change.engine is Engine.SERVER_SIDE
        if change.action is not Action.UPDATE or change.held or not (is_doubtful or is_asked_first(change)):
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
            except Exception as fault:
                log_read_fault(change.cluster, fault, change.identity)
                return change, None
        is_replacing = answer[0] is not None and answer[0].action is Action.REPLACE
        return answer if is_doubtful or is_replacing else (change, None)

    answers = await asyncio.gather(*(ask(change) for change in planned.plan.changes))
    left = [index for index, (change, _) in enumerate(answers) if change is not None]
    position = {index: at for at, index in enumerate(left)}
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
    observed = snapshot.members[change.cluster]
    live = observed.objects.get(change.identity) if isinstance(observed, Read) else None
    assert change.manifest is not None, "an update has a manifest"
    if live is None:
        return change, None
    manager = field_manager(snapshot.fleet.settings.name)
    comparer = Comparer(planned.schedule, snapshot)
    schema = comparer.schemas.of(change.gvk)
    at = (change.gvk, change.identity.namespace, change.identity.name)
    try:
        result = await member.apply(*at, change.manifest, manager=manager, force=True, uid=live.uid, dry_run=True)
    except InvalidObject as refusal:
        causes = refusal.causes or (RefusedField("", "", refusal.message),)
        if (fixed := refused_in_place(causes, schema)) is not None:
            replacing = as_replacement(change, fixed, replicas_path(change.identity, snapshot.interpreters))
            if is_terminating(live):
                ending = terminating(live, change.cluster, change.source, is_wanted=True)
                return replace(replacing, hold=Hold(HeldBy.OTHERS, ending.message)), None
            return replacing, _would_be_refused(change, refusal) if replacing.held else None
        if beside := refused_beside(change.in_the_way, [cause.field for cause in refusal.causes]):
            # Entries of others are taken away, too. Source: design#replaced-entries.
            removed = tuple(sorted((*change.removed_paths, *(entry.path for entry in beside))))
            fields = tuple(sorted((*change.fields, *beside), key=lambda field: field.path))
            update = replace(change, fields=fields, removed_paths=removed, in_the_way=(), engine=Engine.SERVER_SIDE)
            return update, None
        # The dry run does not cover fields that are taken over first, and that may be the cause of its refusal.
        if change.removed_paths:
            return change, None
        hold = Hold(HeldBy.OTHERS, "the API server would refuse it")
        return replace(change, hold=hold), _would_be_refused(change, refusal)
    except MemberClusterError:
        return change, None
    fields = dry_run_changes(live.body, result.body, manager=manager, schema=schema)
    if not is_write_needed(fields) and not change.removed_paths:
        return (change if comparer.altered(change, result) else None), None
    # A field that was told keeps its cause, and one that is taken over stays shown.
    before, paths = {field.path: field for field in change.fields}, {field.path for field in fields}
    answered = [
        replace(field, cause=before[field.path].cause)
        if field.path in before and field.cause is not Cause.SIDE_EFFECT
        else field
        for field in fields
    ]
    answered += [before[path] for path in change.removed_paths if path in before and path not in paths]
    fields = tuple(sorted(answered, key=lambda field: field.path))
    return replace(change, fields=fields, cause=overall_cause(fields), engine=Engine.SERVER_SIDE), None


def _would_be_refused(change: Change, refusal: InvalidObject) -> Problem:
    message = f"{change.identity} would be refused: {refusal.message}"
    return error(change.source, "", "refused-by-api-server", message, change.cluster)


_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE: Final = ("", "Namespace")
_OF_THE_CLUSTER: Final = frozenset({
    ("", "Event"), ("events.k8s.io", "Event"), ("", "Endpoints"), ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
})  # fmt: skip
"""Kinds that the cluster writes by itself."""
_IN_EVERY_NAMESPACE: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
_LISTS: Final = 8
_NAMES_MAX: Final = 3


class _Counted(NamedTuple):
    """Listed objects with whether they are ours, and one error for each kind that failed."""

    objects: frozenset[tuple[Identity, bool]] = frozenset()
    errors: tuple[str, ...] = ()


class Contents:
    """Counts the contents of deleted objects, and asks again after five minutes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, _Counted]] = {}

    async def add(
        self,
        planned: Round,
        members: Mapping[str, MemberCluster],
        settings: FleetSettings,
        within_s: float | None = None,
    ) -> Round:
        """Return the round with a warning for each deletion that takes along what the plan does not delete by itself.

        `settings`: those of the fleet, whose objects count as ours. `within_s`: after so long the contents count as
        unknown; None: the client's own deadlines.
        """
        deleted = (change for change in planned.plan.changes if change.action is Action.DELETE)
        due = [one for one in deleted if one.identity[:2] in (_DEFINITION, _NAMESPACE) and one.cluster in members]
        self._known = {key: self._known[key] for change in due if (key := (change.cluster, change.uid)) in self._known}
        if not due:
            return planned
        counted = [await self._of(change, members[change.cluster], fleet_names(settings), within_s) for change in due]
        problems = dict(planned.problems)
        warned: dict[int, Change] = {}
        for change, contents in zip(due, counted, strict=True):
            text = _deleted_along(change, contents, planned.plan.changes)
            if text:
                why = change.reason
                # The reason goes to history. The hold stays as it is: a changing number must not cause a new report.
                reason = replace(why, text=f"{why.text}; it {text}") if why is not None else None
                warned[id(change)] = replace(change, reason=reason)
                message = f"deleting {change.identity} {text}"
                problem = warning(change.source, "", "deletes-others", message, change.cluster)
                problems[change.identity] = (*problems.get(change.identity, ()), problem)
        changes = tuple(warned.get(id(change), change) for change in planned.plan.changes)
        plan = replace(planned.plan, changes=changes, problems=with_problems(planned.plan.problems, *problems.values()))
        return replace(planned, plan=plan, problems=problems)

    async def _of(
        self, change: Change, member: MemberCluster, fleet_names: Collection[str], within_s: float | None
    ) -> _Counted:
        now_s, key = self._clock.monotonic_s(), (change.cluster, change.uid)
        known = self._known.get(key)
        if known is not None and now_s - known[0] < timing.CONTENTS_S:
            return known[1]
        try:
            async with asyncio.timeout(within_s):
                contents = await _listed(change, member, fleet_names)
        except MemberClusterError as fault:
            contents = _Counted(errors=(fault.message,))
        except TimeoutError:
            contents = _Counted(errors=(f"no answer within {within_s:g} s",))
        self._known[key] = now_s, contents
        return contents


async def _listed(change: Change, member: MemberCluster, fleet_names: Collection[str]) -> _Counted:
    """List contents by metadata, except objects that the cluster makes itself.

    Raises MemberClusterError: the kinds of the cluster are not known.
    """
    discovery = await member.discover()
    if change.identity[:2] == _DEFINITION:
        group, kind = dig(change.before or {}, "spec", "group"), dig(change.before or {}, "spec", "names", "kind")
        wanted = {gvk.group_kind for gvk in discovery.served() if gvk.group_kind == (group, kind)}
    else:
        namespaced = {gvk.group_kind for gvk, is_namespaced in discovery.served().items() if is_namespaced}
        wanted = namespaced - _OF_THE_CLUSTER
    kinds = [served.gvk for one in sorted(wanted) if (served := discovery.preferred(*one)) is not None]
    namespace = change.identity.name if change.identity[:2] == _NAMESPACE else ""
    slots = asyncio.Semaphore(_LISTS)

    async def listed(gvk: GVK) -> _Counted:
        try:
            async with slots:
                listing = await member.list_metadata(gvk, namespace=namespace)
        except MemberClusterError as fault:
            return _Counted(errors=(fault.message,))
        listed_here = [
            (one.identity, dig(one.body, "metadata", "labels", FLEET_LABEL) in fleet_names)
            for one in listing.objects
            if (one.identity.kind, one.identity.name) not in _IN_EVERY_NAMESPACE
            and not dig(one.body, "metadata", "ownerReferences")
        ]
        return _Counted(frozenset((*listed_here, *((identity, False) for identity in listing.unread))))

    each = await asyncio.gather(*map(listed, kinds))
    errors = tuple(chain.from_iterable(one.errors for one in each))
    return _Counted(frozenset(each_object for one in each for each_object in one.objects), errors)


def _deleted_along(change: Change, contents: _Counted, changes: Collection[Change]) -> str:
    """Return the objects that are deleted along; empty: only those that the plan deletes there anyway."""
    deleted = {other.identity for other in changes if other.action is Action.DELETE and other.cluster == change.cluster}
    left = sorted(entry for entry in contents.objects if entry[0] not in deleted)
    foreign = [identity for identity, is_ours in left if not is_ours]
    ours = [identity for identity, is_ours in left if is_ours]
    parts = [f"{_counted(foreign)} that are not ours"] if foreign else []
    parts += [f"{_counted(ours)} of ours that nothing else deletes"] if ours else []
    if contents.errors:
        parts.append(f"objects that could not be counted ({contents.errors[0]})")
    return f"deletes {' and '.join(parts)} with it" if parts else ""


def _counted(identities: Collection[Identity]) -> str:
    """Name kinds with their numbers, and the first objects: `2 Widget (shop/a, shop/b)`."""
    numbers = Counter(identity.kind for identity in identities)
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(numbers.items()))
    names = [f"{one.namespace}/{one.name}" if one.namespace else one.name for one in sorted(identities)[:_NAMES_MAX]]
    more = "" if len(identities) <= _NAMES_MAX else ", …"
    return f"{kinds} ({', '.join(names)}{more})"
