"""The picture of the fleet after a round, with its failed changes.

Changes that were tried and not made: each stays a failure, with its error, until it is made or no longer due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.content import JsonObject, dig
from reconciler.api.fleet import Template
from reconciler.api.ledger import ARRIVES
from reconciler.api.plan import Change, Manifest, Plan
from reconciler.api.problem import NOWHERE, Problem, Severity, with_problems, without_problems
from reconciler.api.refs import Copy, Identity
from reconciler.containment import INTERNAL_ERROR, fault_fields
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.incremental import by_key
from reconciler.planner import INCOMPLETE, Round
from reconciler.policy import FrozenReaches
from reconciler.scheduler import Schedule
from reconciler.state import MISSING, Failed, HealthState, Healthy, StateFacts, health_of

log = logging.getLogger("reconciler")

Failures = Mapping[Copy, Failed]
"""(cluster, identity) to the error of the API server or of the connection."""


def failures_after(
    before: Failures, picture: Round, results: Iterable[ChangeResult], fought: Collection[Copy] = ()
) -> Failures:
    """Return the failures after a round, of changes due in `picture`, without altered writes of `fought` copies."""
    failures = dict(before)
    for result in results:
        copy = result.change.copy
        known = failures.pop(copy, None)
        if result.error and not (result.altered and copy in fought):
            is_altered, at = bool(result.altered), picture.plan.head
            failed = Failed(result.error, is_altered=is_altered, todo=result.todo, revision=at, fault=result.fault)
            # The revision with which it began to fail so: later ones are not behind it.
            is_same = known is not None and known.why == failed.why
            failures[copy] = replace(failed, revision=known.revision) if known is not None and is_same else failed
    if not failures:
        return {}
    due = {change.copy for change in picture.plan.changes if change.held is None}
    return {copy: failed for copy, failed in failures.items() if copy in due}


def with_holders(planned: Round, held_elsewhere: Mapping[str, str]) -> Round:
    """Return the round with a problem for each cluster that a copy of the journal owns (`held_elsewhere`: why)."""
    problems = {
        Problem(source=NOWHERE, code="fleet-held-elsewhere", message=why, severity=Severity.ERROR, cluster=cluster)
        for cluster, why in held_elsewhere.items()
    }
    if not problems:
        return planned
    return replace(planned, plan=replace(planned.plan, problems=with_problems(planned.plan.problems, problems)))


def merged(
    before: Round | None,
    planned: Round,
    results: Iterable[ChangeResult],
    snapshot: FleetSnapshot,
    unlisted: Iterable[Problem] = (),
) -> Round:
    """Return the picture after a round: its own pending changes, and earlier ones of unevaluated objects.

    Unevaluated: out of scope, pending in a member, in an unread one, or frozen by a broken file. `unlisted`: kinds that
    could not be listed in earlier rounds, without a later success.
    """
    done = {result.change.copy for result in results if not result.error}
    due = tuple(change for change in planned.plan.changes if change.held or change.copy not in done)
    if before is None:
        return replace(planned, plan=_plan(planned.plan, due, planned.plan.problems))
    only, members = snapshot.only, snapshot.members
    unread = frozenset(name for name, member in members.items() if isinstance(member, NotRead))
    if only is None and not unread and planned.schedule.fleet.is_complete:
        ongoing = tuple(change for change in before.plan.changes if _is_under_way(change, members))
        return replace(planned, plan=_plan(planned.plan, (*ongoing, *due), planned.plan.problems))
    frozen = {copy: why for copy, why in before.frozen.items() if not snapshot.is_asked(*copy)}
    frozen |= dict(_missed(before.manifests, planned.schedule, only)) | dict(planned.frozen)

    def is_evaluated(cluster: str, identity: Identity) -> bool:
        if identity in planned.schedule.frozen or (cluster, identity) in frozen:
            return False
        # What is wanted no longer in a cluster that is away has nothing to be kept for.
        is_away = cluster in unread and planned.schedule.is_bound(identity, cluster)
        return snapshot.is_asked(cluster, identity) and not is_away

    pending = tuple(
        change
        for change in before.plan.changes
        if not is_evaluated(change.cluster, change.identity)
        or _is_under_way(change, members)
        or (change.cluster in unread and change.action not in ARRIVES)
    )
    # What is wrong with the store or with a whole cluster comes again with every round.
    by_identity = _problems(before.problems, planned.problems, only, is_evaluated)
    # But what cannot be listed is only known to rounds that ask for it.
    missing = unlisted if only is not None else ()
    problems = with_problems(planned.plan.problems, missing, *by_identity.values())
    plan = _plan(planned.plan, (*pending, *due), problems)
    manifests = _manifests(before.manifests, planned.manifests, only, is_evaluated)
    return replace(planned, plan=plan, manifests=manifests, problems=by_identity, frozen=frozen)


def _missed(
    before: Mapping[str, Mapping[Identity, Manifest]], schedule: Schedule, only: frozenset[Identity] | None
) -> Iterator[tuple[Copy, str]]:
    """Yield objects that lost their template in an incompletely read store: a broken file may want them."""
    fleet = schedule.fleet
    broken = FrozenReaches(fleet.frozen)
    for cluster, manifests in before.items() if not fleet.is_complete else ():
        for identity in manifests.keys() if only is None else only & manifests.keys():
            if identity not in fleet.templates and identity not in schedule.bindings:
                manifest = manifests[identity]
                template = Template(gvk=manifest.gvk, identity=identity, content=manifest.content, source=NOWHERE)
                reach = broken.by(template)
                yield (cluster, identity), reach.why if reach is not None else INCOMPLETE


def _problems(
    before: Mapping[Identity, tuple[Problem, ...]],
    now: Mapping[Identity, tuple[Problem, ...]],
    only: frozenset[Identity] | None,
    is_evaluated: Callable[[str, Identity], bool],
) -> dict[Identity, tuple[Problem, ...]]:
    """Return the problems, keeping those of unevaluated objects, also of objects evaluated in other clusters alone."""
    kept_problems = dict(before)
    for identity in before.keys() if only is None else only & before.keys():
        kept_problems[identity] = tuple(
            problem for problem in before[identity] if problem.cluster and not is_evaluated(problem.cluster, identity)
        )
    for identity, problems in now.items():
        kept_problems[identity] = tuple(sorted({*kept_problems.get(identity, ()), *problems}))
    return {identity: problems for identity, problems in kept_problems.items() if problems}


def with_completeness(picture: Round, members: Mapping[str, Member]) -> Round:
    """Return the picture, complete if nothing is missing of the store and of any member, as each was read last."""
    is_seen = all(isinstance(member, Read) and not member.unread for member in members.values())
    has_faults = any(problem.code == INTERNAL_ERROR for problem in chain(*picture.problems.values()))
    is_complete = is_seen and not has_faults and picture.schedule.fleet.is_complete
    return replace(picture, plan=replace(picture.plan, is_complete=is_complete))


def with_faults(picture: Round, before: Failures, now: Failures) -> Round:
    """The picture with the faults of the program that changes failed for. `before`: those that it may show."""
    known, faults = ({failed.fault for failed in each.values() if failed.fault is not None} for each in (before, now))
    others = without_problems(picture.plan.problems, known - faults)
    return replace(picture, plan=replace(picture.plan, problems=with_problems(others, faults)))


def log_faults(before: Iterable[Problem], after: Iterable[Problem]) -> None:
    """Log each fault that was not known before, with the place in the code: what a report of it needs."""
    if before is after:
        return
    known = {problem for problem in before if problem.code == INTERNAL_ERROR}
    for problem in after:
        if problem.code == INTERNAL_ERROR and problem not in known:
            error_text = {"error": f"{problem.message}\n{problem.trace}"}
            extra = fault_fields(problem.cluster, problem.source) | error_text
            log.error("a fault of the program; what it concerns stays as it is", extra=extra)


def _is_under_way(change: Change, members: Mapping[str, Member]) -> bool:
    member = members.get(change.cluster)
    return isinstance(member, Read) and change.identity in member.under_way


def _plan(plan: Plan, changes: tuple[Change, ...], problems: tuple[Problem, ...]) -> Plan:
    ordered = tuple(sorted(changes, key=lambda change: (change.identity, change.cluster, change.held or "")))
    return replace(plan, changes=ordered, waves=(), problems=problems)


def _manifests(
    before: Mapping[str, Mapping[Identity, Manifest]],
    now: Mapping[str, Mapping[Identity, Manifest]],
    only: frozenset[Identity] | None,
    is_evaluated: Callable[[str, Identity], bool],
) -> dict[str, Mapping[Identity, Manifest]]:
    manifests = dict(before)
    for cluster in before.keys() | now.keys():
        known, new = before.get(cluster, {}), now.get(cluster, {})
        over = {
            identity
            for identity in (known.keys() if only is None else only & known.keys())
            if is_evaluated(cluster, identity)
        }
        if new or over:
            manifests[cluster] = {identity: one for identity, one in known.items() if identity not in over} | dict(new)
    return {cluster: manifests.get(cluster, {}) for cluster in sorted(before.keys() | now.keys())}


Healths = Mapping[str, Mapping[Identity, HealthState]]
"""Health of unhealthy objects, by cluster."""
Looked = dict[str, dict[Identity, HealthState]]
"""Health of everything that was looked at, by cluster."""


def facts_of(picture: Round, members: Mapping[str, Member]) -> StateFacts:
    """Return the facts after a round, without its caches. `picture`: pending changes, over the whole fleet."""
    changes = by_key((change.copy, change) for change in picture.plan.changes)
    return StateFacts(
        schedule=picture.schedule,
        manifests=picture.manifests,
        members=members,
        changes={copy: tuple(pending) for copy, pending in changes.items()},
        problems=picture.problems,
        frozen=picture.frozen,
        held_digest=picture.plan.held_digest,
        unlisted={
            name: member.unlisted for name, member in members.items() if isinstance(member, Read) and member.unlisted
        },
    )


def health_read(planned: Round, snapshot: FleetSnapshot) -> Looked:
    """Return the health of desired and of frozen objects that a round read, by cluster."""
    health: Looked = {}
    frozen = planned.schedule.frozen | {identity for _, identity in planned.frozen}
    for cluster, manifests in planned.manifests.items():
        member = snapshot.members.get(cluster)
        if isinstance(member, Read):
            # What is frozen is not compared, but how it fares can be seen.
            rows = snapshot.journal.ledger.get(cluster, {}) if frozen else {}
            here = health[cluster] = {}
            for identity in (*manifests, *frozen & rows.keys() - member.unasked - manifests.keys()):
                live = member.objects.get(identity)
                if live is not None:
                    here[identity] = health_of(live, snapshot.interpreters.of(*identity[:2]))
                elif identity in member.absent:
                    here[identity] = MISSING
    return health


def not_healthy(looked: Healths) -> Healths:
    """Return unhealthy objects."""
    return {
        cluster: {identity: health for identity, health in states.items() if not isinstance(health, Healthy)}
        for cluster, states in looked.items()
    }


def last_contacts(document: JsonObject | None) -> dict[str, str]:
    """Return the time of each cluster's last reading, from the picture of an earlier round (RFC 3339)."""
    clusters = dig(document, "clusters") or () if document is not None else ()
    return {entry["name"]: entry["lastSuccess"] for entry in clusters if entry.get("lastSuccess")}
