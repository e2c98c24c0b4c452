"""The plan of one object: compare it in each cluster, plan its moves, then make changes of both.

Source: design#effective-placement; design#taken-over; design#cluster-leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.clusters import Absent, Read
from reconciler.api.plan import Action, Cause, Change, Hold, Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.diff import Comparer, Comparison, Copies, SeenCopies
from reconciler.observations import Replicas, Rest
from reconciler.ownership import Ownership, is_terminating, terminating
from reconciler.planner.causes import (
    REPLICA_FIELDS,
    as_assigned,
    confirmed_shares,
    lack_of_completions,
    not_served,
    of_other_scope,
    runs_elsewhere,
)
from reconciler.planner.deletion import LossInputs, lose, lost_copies
from reconciler.planner.plan_moves import plan_moves
from reconciler.render import Manifests
from reconciler.scheduler import prerequisites, undecided_in, waits_for_prerequisite


class ObjectPlan(Struct, frozen=True, kw_only=True):
    """The changes of one object, with its problems and records.

    `instead`: active manifests that differ from the target's, by cluster; None: there is none.
    """

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    instead: Mapping[str, Manifest | None] = field(default_factory=dict)
    holds: Mapping[str, Hold] = field(default_factory=dict)
    at_rest: Mapping[str, Rest] = field(default_factory=dict)
    copies: tuple[str, ...] = ()
    """The clusters that have one of ours."""
    frozen: Mapping[str, str] = field(default_factory=dict)


def diff_object(
    manifests: Manifests, comparer: Comparer, losses: LossInputs, identity: Identity, seen: SeenCopies
) -> ObjectPlan:
    """Return the plan of one object: in its scheduled clusters, and of undesired copies."""
    if identity in manifests.left:
        return ObjectPlan(problems=(manifests.left[identity],), copies=tuple(seen.copies))
    schedule, snapshot = comparer.schedule, comparer.snapshot
    is_placed = identity in schedule.bindings and identity not in schedule.frozen
    part = _diff_placed(manifests, comparer, identity, seen) if is_placed else ObjectPlan()
    changes, problems, frozen = [*part.changes], [*part.problems], {}
    for lost in lost_copies(identity, seen, snapshot.members, losses):
        if lost.is_frozen:
            frozen[lost.cluster] = lost.why
        change, problem = lose(schedule, snapshot, lost, part.holds.get(lost.cluster))
        changes += [change] if change else []
        problems += [problem] if problem else []
    copies = tuple(seen.copies)
    return replace(part, changes=tuple(changes), problems=tuple(problems), copies=copies, frozen=frozen)


def _diff_placed(manifests: Manifests, comparer: Comparer, identity: Identity, seen: SeenCopies) -> ObjectPlan:
    schedule, snapshot = comparer.schedule, comparer.snapshot
    target = dict(schedule.bindings[identity].targets)
    old = {**snapshot.placed_elsewhere(identity), **seen.copies} if snapshot.elsewhere else seen.copies
    wanted = manifests.of(identity, target)
    compared = {name: _compare(comparer, manifest, seen.owners.get(name)) for name, manifest in wanted.items()}
    replicas = {name: (target[name], old.get(name)) for name in compared} if target != old else {}
    held = _as_held(manifests, comparer, identity, replicas)
    copies = Copies(
        identity=identity,
        schedule=schedule,
        snapshot=snapshot,
        target=target,
        old=old,
        compared=compared,
        manifests=wanted,
        held={name: comparison for name, (_, comparison) in held.items()},
    )
    state, at_rest = plan_moves(copies)
    instead: dict[str, Manifest | None] = {}
    changes: list[Change] = []
    problems = [*manifests.problems.get(identity, ())]
    for cluster, comparison in compared.items():
        if cluster not in state.targets:
            # A run that stays where it began is not begun a second time here.
            instead[cluster] = None
            continue
        if cluster in state.holds:
            if (smaller := held.get(cluster)) is not None:
                instead[cluster] = smaller[0]
                changes += _reduced_later(smaller[1], comparison, state.holds[cluster])
        elif comparison.change is not None:
            change = as_assigned(comparison.change, old.get(cluster), target[cluster])
            # It waits by itself, for a run elsewhere, or for its policy.
            hold = change.hold or state.waits.get(cluster) or schedule.hold(identity, cluster)
            changes.append(replace(change, hold=hold) if hold else change)
        problems += [found for found in (comparison.problem, comparison.remark) if found is not None]
        if comparison.live is not None and is_terminating(comparison.live):
            source = (instead.get(cluster) or wanted[cluster]).source
            problems.append(terminating(comparison.live, cluster, source, is_wanted=True))
    problems += runs_elsewhere(schedule, snapshot, identity, target, state.targets)
    problems += undecided_in(schedule, identity, snapshot.elsewhere & target.keys())
    if identity[:2] == ("batch", "Job"):
        problems += lack_of_completions(schedule, identity, snapshot)
    if changes:
        moved = _arrivals(manifests, identity, target, old)
        changes = [
            replace(change, cause=Cause.PLACEMENT)
            if change.cluster in moved and change.action is Action.CREATE and change.cause is Cause.DECLARED
            else change
            for change in changes
        ]
        changes = list(confirmed_shares(schedule, changes, target, old))
    return ObjectPlan(
        changes=tuple(changes),
        problems=tuple(problems),
        instead=instead,
        holds=state.holds,
        at_rest=at_rest,
    )


def _as_held(
    manifests: Manifests,
    comparer: Comparer,
    identity: Identity,
    wanted: Mapping[str, tuple[Replicas, Replicas]],
) -> dict[str, tuple[Manifest, Comparison]]:
    """Return copies that are to shrink: their manifests with the present replicas, and the differences from these.

    `wanted`: from now on, until now.
    """
    found: dict[str, tuple[Manifest, Comparison]] = {}
    for name, (after, before) in wanted.items():
        is_less = after is not None and before is not None and after < before
        manifest = manifests.with_replicas(identity, name, before) if is_less else None
        if manifest is not None:
            found[name] = manifest, _compare(comparer, manifest)
    return found


def _compare(comparer: Comparer, manifest: Manifest, ownership: Ownership | None = None) -> Comparison:
    """Return the comparison in a cluster that was read: of kinds that are not served there, why."""
    schedule, identity = comparer.schedule, manifest.identity
    member = comparer.snapshot.members[manifest.cluster]
    assert isinstance(member, Read), "there are manifests where it was read"
    live = member.live(identity)
    is_served = manifest.gvk in member.served
    if not is_served and manifest.gvk.api_version not in member.silent:
        definition = schedule.definition_of(identity[:2])
        if definition is None or member.name not in schedule.bindings[definition].clusters:
            return Comparison(problem=not_served(manifest, member))
        live = Absent()
    elif is_served and bool(identity.namespace) != member.served[manifest.gvk]:
        return Comparison(problem=of_other_scope(manifest, member))
    comparison = comparer.compare(manifest, live, ownership)
    is_free = schedule.hold(identity, member.name) is None
    if is_free and isinstance(live, Absent) and comparison.change is not None:
        # A Namespace can be seen; the definition of a kind is there where the kind is served.
        there = [
            needed
            for needed in prerequisites(schedule, identity)
            if (not isinstance(member.live(needed), Absent) if needed.kind == "Namespace" else is_served)
        ]
        wait = waits_for_prerequisite(schedule, identity, member.name, there)
        if wait is not None:
            return replace(comparison, change=replace(comparison.change, hold=wait))
    if not is_served and comparison.change is not None:
        reason = Reason(rule="unverified", text="its kind is defined in the same plan, so nothing was compared")
        return replace(comparison, change=replace(comparison.change, reason=reason))
    return comparison


def _arrivals(manifests: Manifests, identity: Identity, target: Collection[str], old: Collection[str]) -> set[str]:
    """Return where it comes for the sake of its placement: not where it was to be before and could not be created."""
    if not old:
        return set()
    previous = manifests.snapshot.observations.previous.get(identity)
    is_same = previous is not None and set(old) <= set(target) == {cluster for cluster, _ in previous.targets}
    return set() if is_same else set(target) - set(old)


def _reduced_later(now: Comparison, target: Comparison, hold: Hold) -> list[Change]:
    """Return the change of everything but the smaller replica count, and that of the count, held."""
    due = {change.path: change for change in target.change.fields} if target.change else {}
    done = {change.path for change in now.change.fields} if now.change else set()
    rest = [change for path, change in due.items() if path not in done or path in REPLICA_FIELDS]
    found = [now.change] if now.change is not None else []
    if target.change is not None and rest:
        fields = tuple([replace(change, cause=Cause.PLACEMENT) for change in rest])
        found.append(replace(target.change, hold=hold, fields=fields, cause=Cause.PLACEMENT))
    return found
