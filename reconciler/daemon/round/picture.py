"""The whole picture from partial rounds: what the last look at each identity left undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from types import MappingProxyType

from msgspec.structs import replace

from reconciler.containment import INTERNAL_ERROR
from reconciler.daemon.observing.scope import is_asked
from reconciler.daemon.round.act import Result
from reconciler.daemon.round.failures import Faults
from reconciler.engine import Decision, Round
from reconciler.model.fleet import Template
from reconciler.model.ledger import ARRIVES
from reconciler.model.observation import Member, NotRead, Read
from reconciler.model.plan import Change, Manifest, Plan
from reconciler.model.problem import NOWHERE, Problem, with_problems, without_problems
from reconciler.model.refs import Identity
from reconciler.stages.claims import Frozen
from reconciler.stages.deletion import INCOMPLETE
from reconciler.stages.state import Copy


def merged(
    before: Round | None,
    planned: Round,
    results: Iterable[Result],
    only: frozenset[Identity] | None,
    members: Mapping[str, Member] = MappingProxyType({}),
    unlisted: Iterable[Problem] = (),
) -> Round:
    """Return the picture after a round: its own pending changes, and earlier ones of unevaluated objects.

    Unevaluated: out of scope, pending in a member, in an unread one, or frozen by a broken file. `unlisted`: kinds that
    could not be listed in earlier rounds, without a later success.
    """
    done = {(result.change.cluster, result.change.identity) for result in results if not result.error}
    due = tuple(
        change for change in planned.plan.changes if change.held or (change.cluster, change.identity) not in done
    )
    if before is None:
        return replace(planned, plan=_plan(planned.plan, due, planned.plan.problems))
    unread = frozenset(name for name, member in members.items() if isinstance(member, NotRead))
    if only is None and not unread and planned.decision.fleet.is_complete:
        going_on = tuple(change for change in before.plan.changes if _is_under_way(change, members))
        return replace(planned, plan=_plan(planned.plan, (*going_on, *due), planned.plan.problems))
    is_looked_at = partial(is_asked, only, members)
    frozen = {copy: why for copy, why in before.frozen.items() if not is_looked_at(*copy)}
    frozen |= dict(_missed(before.manifests, planned.decision, only)) | dict(planned.frozen)

    def is_evaluated(cluster: str, identity: Identity) -> bool:
        if identity in planned.decision.frozen or (cluster, identity) in frozen:
            return False
        # What is wanted no longer in a cluster that is away has nothing to be kept for.
        is_away = cluster in unread and is_bound(planned.decision, identity, cluster)
        return is_looked_at(cluster, identity) and not is_away

    kept = tuple(
        change
        for change in before.plan.changes
        if not is_evaluated(change.cluster, change.identity)
        or _is_under_way(change, members)
        or (change.cluster in unread and change.action not in ARRIVES)
    )
    # What is wrong with the store or with a whole cluster comes anew with every round.
    found = _problems(before.problems, planned.problems, only, is_evaluated)
    # But what cannot be listed is only known to rounds that ask for it.
    told = unlisted if only is not None else ()
    problems = with_problems(planned.plan.problems, told, *found.values())
    plan = _plan(planned.plan, (*kept, *due), problems)
    manifests = _manifests(before.manifests, planned.manifests, only, is_evaluated)
    return replace(planned, plan=plan, manifests=manifests, problems=found, frozen=frozen)


def is_bound(decision: Decision, identity: Identity, cluster: str) -> bool:
    """Return whether the store places a copy in a cluster."""
    binding = decision.bindings.get(identity)
    return binding is not None and any(target.cluster == cluster for target in binding.targets)


def _missed(
    before: Mapping[str, Mapping[Identity, Manifest]], decision: Decision, only: frozenset[Identity] | None
) -> Iterator[tuple[Copy, str]]:
    """Yield objects that lost their template in an incompletely read store: a broken file may want them."""
    fleet = decision.fleet
    broken = Frozen(fleet.frozen)
    for cluster, manifests in before.items() if not fleet.is_complete else ():
        for identity in manifests.keys() if only is None else only & manifests.keys():
            if identity not in fleet.templates and identity not in decision.bindings:
                manifest = manifests[identity]
                seen = Template(gvk=manifest.gvk, identity=identity, body=manifest.body, source=NOWHERE, digest="")
                reach = broken.by(seen)
                yield (cluster, identity), reach.why if reach is not None else INCOMPLETE


def _problems(
    before: Mapping[Identity, tuple[Problem, ...]],
    now: Mapping[Identity, tuple[Problem, ...]],
    only: frozenset[Identity] | None,
    is_evaluated: Callable[[str, Identity], bool],
) -> dict[Identity, tuple[Problem, ...]]:
    """Return the problems, keeping those of unevaluated objects, also of objects evaluated in other clusters alone."""
    found = dict(before)
    for identity in before.keys() if only is None else only & before.keys():
        found[identity] = tuple(
            problem for problem in before[identity] if problem.cluster and not is_evaluated(problem.cluster, identity)
        )
    for identity, problems in now.items():
        found[identity] = tuple(sorted({*found.get(identity, ()), *problems}))
    return {identity: problems for identity, problems in found.items() if problems}


def with_completeness(picture: Round, members: Mapping[str, Member]) -> Round:
    """The picture, complete if nothing of the store and of any member is missing from it, whichever round looked at it.

    `members`: how each of them was seen last.
    """
    is_seen = all(isinstance(member, Read) and not member.unread for member in members.values())
    has_faults = any(found.code == INTERNAL_ERROR for found in chain(*picture.problems.values()))
    is_complete = is_seen and not has_faults and picture.decision.fleet.is_complete
    return replace(picture, plan=replace(picture.plan, is_complete=is_complete))


def with_faults(picture: Round, before: Faults, now: Faults) -> Round:
    """The picture with the faults of the program that changes failed for. `before`: those that it may show."""
    others = without_problems(picture.plan.problems, set(before.values()) - set(now.values()))
    return replace(picture, plan=replace(picture.plan, problems=with_problems(others, now.values())))


def without_made(picture: Round, results: Iterable[Result]) -> Round:
    """The picture after writes that ended later than their round."""
    made = {(result.change.cluster, result.change.identity) for result in results if not result.error}
    left = tuple(
        change for change in picture.plan.changes if change.held or (change.cluster, change.identity) not in made
    )
    return replace(picture, plan=replace(picture.plan, changes=left))


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
    found = dict(before)
    for cluster in before.keys() | now.keys():
        known, seen = before.get(cluster, {}), now.get(cluster, {})
        over = {
            identity
            for identity in (known.keys() if only is None else only & known.keys())
            if is_evaluated(cluster, identity)
        }
        if seen or over:
            found[cluster] = {identity: one for identity, one in known.items() if identity not in over} | dict(seen)
    return {cluster: found.get(cluster, {}) for cluster in sorted(before.keys() | now.keys())}
