"""The changes of each cluster: due ones, held ones, and problems.

Every object is compared once in each cluster; its moves, losses and holds follow from the comparisons, and changes from
all of these. Source: design#effective-placement; design#taken-over; design#cluster-leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.clusters import Absent, LiveObject, Member, NotRead, Present, Read, Unknown
from reconciler.api.ledger import GuardsInForce
from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold, Manifest, Plan
from reconciler.api.problem import Problem
from reconciler.api.refs import Copy, Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.containment import INTERNAL_ERROR, TryResult, try_call
from reconciler.diff import Comparer, Comparison, Copies, FleetCopies, OwnershipIndex
from reconciler.documents import served_versions
from reconciler.observations import CopyAtRest, Replicas
from reconciler.ownership import Ownership, is_terminating, terminating
from reconciler.planner.causes import (
    as_arrived,
    as_assigned,
    confirmed_shares,
    lack_of_completions,
    not_served,
    of_clusters,
    of_other_scope,
    reduced_later,
    runs_elsewhere,
)
from reconciler.planner.deletion import DeletionAction, LossInputs, lose, lost_copies, stripped_copies
from reconciler.planner.guard import judged_by
from reconciler.planner.plan_moves import plan_moves
from reconciler.render import Manifests, fault_of
from reconciler.scheduler import Schedule, prerequisites, undecided_in, waits_for_prerequisite


class Round(Struct, frozen=True, kw_only=True):
    """One pass: schedule, active manifests, plan. `problems`: of single objects; a later look at one replaces them."""

    schedule: Schedule
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    plan: Plan
    guards: GuardsInForce
    problems: Mapping[Identity, tuple[Problem, ...]] = field(default_factory=dict)
    at_rest: Mapping[str, Mapping[Identity, CopyAtRest]] = field(default_factory=dict)
    """New records of copies without pending writes, by cluster: to be recorded."""
    frozen: Mapping[Copy, str] = field(default_factory=dict)
    """The reasons why our undesired copies stay, by cluster and identity: a broken file may want them."""
    rollouts: tuple[RolloutProgress, ...] = ()
    """The state of Rollouts; the plan has only the changes that they let begin."""


class ObjectPlan(Struct, frozen=True, kw_only=True):
    """The changes, problems and records of one object. `instead`: active manifests other than the target's."""

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_sound: bool = True
    instead: Mapping[str, Manifest | None] = field(default_factory=dict)
    holds: Mapping[str, Hold] = field(default_factory=dict)
    at_rest: Mapping[str, CopyAtRest] = field(default_factory=dict)
    copies: tuple[str, ...] = ()
    """The clusters that have one of ours."""
    frozen: Mapping[str, str] = field(default_factory=dict)


def diff_all(manifests: Manifests, schedule: Schedule, *, are_shared: bool = False) -> tuple[Round, dict[str, int]]:
    """Compare every object with every cluster that was read; also return our objects per cluster."""
    snapshot, inputs = manifests.snapshot, _Inputs(manifests, schedule, are_shared=are_shared)
    changes: list[Change] = []
    problems: dict[Identity, tuple[Problem, ...]] = {}
    ours: Counter[str] = Counter()
    at_rest: dict[str, dict[Identity, CopyAtRest]] = {}
    frozen: dict[Copy, str] = {}
    instead: dict[str, dict[Identity, Manifest | None]] = {}
    is_sound = True
    bound = schedule.bindings.keys() if snapshot.only is None else schedule.bindings.keys() & snapshot.only
    for identity in sorted({*bound, *inputs.standings.identities}):
        part = inputs.plan(identity)
        is_sound = is_sound and part.is_sound
        changes += part.changes
        ours.update(part.copies)
        frozen.update({(cluster, identity): why for cluster, why in part.frozen.items()})
        for cluster, manifest in part.instead.items():
            instead.setdefault(cluster, {})[identity] = manifest
        for cluster, rest in part.at_rest.items():
            at_rest.setdefault(cluster, {})[identity] = rest
        if part.problems:
            problems[identity] = part.problems
    in_force = {
        cluster: {i: one for i, one in {**manifests.by_cluster[cluster], **others}.items() if one is not None}
        for cluster, others in instead.items()
    }
    members, ledger = snapshot.members.values(), snapshot.journal.ledger
    plan = Plan(
        base="",
        head=snapshot.fleet.revision,
        changes=tuple(changes),
        problems=tuple(of_clusters(members, snapshot.observations.clusters)),
        is_complete=is_sound and not any(isinstance(member, NotRead) or member.unread for member in members),
    )
    managed = {
        one.name: len(ledger.get(one.name, ()))
        if isinstance(one, NotRead) or snapshot.only is not None
        else ours[one.name]
        for one in members
    }
    return Round(
        schedule=schedule,
        manifests={**manifests.by_cluster, **in_force},
        plan=plan,
        guards=judged_by(snapshot.journal.losses.guards, snapshot.fleet, snapshot.now),
        problems=problems,
        at_rest=at_rest,
        frozen=frozen,
    ), managed


class _Inputs:
    def __init__(self, manifests: Manifests, schedule: Schedule, *, are_shared: bool) -> None:
        self._manifests = manifests
        self._schedule = schedule
        self._are_shared = are_shared
        self._comparer = Comparer(schedule, manifests.snapshot, are_shared=are_shared)
        self._losses = LossInputs(schedule)
        self.standings = OwnershipIndex(manifests.snapshot)

    def plan(self, identity: Identity) -> ObjectPlan:
        """Return the plan of one object, with the faults of the program that it brings out.

        Source: design#boundaries. A fault of our own, or of an interpreter that somebody installed, is met first by
        the object that brings it out; the objects beside it, and its copies in other clusters, go on.
        """
        left = self._manifests.of(identity, self._manifests.by_cluster)
        if identity in self._manifests.failed:
            return ObjectPlan(instead=dict.fromkeys(left), problems=(self._manifests.failed[identity],), is_sound=False)
        copies = self.standings.of(identity)
        planned, fault = try_call(diff_object, self._manifests, self._comparer, self._losses, identity, copies)
        if planned is not None:
            return planned
        # Without the copies that bring the fault out, which count as unread.
        fleet, members = self._schedule.fleet, self._manifests.snapshot.members
        clusters = [name for name, one in members.items() if isinstance(one, Read) and identity in one.objects]
        faults = {}
        for cluster in clusters:
            alone = self._plan_without(identity, [name for name in clusters if name != cluster])
            if alone.fault is not None:
                faults[cluster] = alone.fault
        if faults:
            planned, fault = self._plan_without(identity, list(faults))
            if planned is not None:
                more = [fault_of(fleet, identity, one, cluster) for cluster, one in faults.items()]
                return replace(planned, problems=(*planned.problems, *more), is_sound=False)
        return ObjectPlan(instead=dict.fromkeys(left), problems=(fault_of(fleet, identity, fault),), is_sound=False)

    def _plan_without(self, identity: Identity, clusters: list[str]) -> TryResult[ObjectPlan]:
        members: dict[str, Member] = dict(self._manifests.snapshot.members)
        for name in clusters:
            member = members[name]
            assert isinstance(member, Read), "an object was seen in it"
            unread = {**member.unread, identity: f"{INTERNAL_ERROR}: it could not be settled"}
            members[name] = replace(member, objects=_Without(member.objects, identity), unread=unread)
        snapshot = replace(self._manifests.snapshot, members=members, only=frozenset({identity}))
        manifests = replace(self._manifests, snapshot=snapshot)
        comparer = Comparer(self._schedule, snapshot, are_shared=self._are_shared)
        return try_call(
            lambda: diff_object(manifests, comparer, self._losses, identity, OwnershipIndex(snapshot).of(identity))
        )


class _Without(Mapping[Identity, LiveObject]):
    """A mapping without one key; a copy of thousands of objects for each that fails would be dear."""

    def __init__(self, objects: Mapping[Identity, LiveObject], hidden: Identity) -> None:
        self._objects, self._hidden = objects, hidden

    def __getitem__(self, identity: Identity) -> LiveObject:
        if identity == self._hidden:
            raise KeyError(identity)
        return self._objects[identity]

    def __iter__(self) -> Iterator[Identity]:
        return (identity for identity in self._objects if identity != self._hidden)

    def __len__(self) -> int:
        return len(self._objects) - (self._hidden in self._objects)


def diff_object(
    manifests: Manifests, comparer: Comparer, losses: LossInputs, identity: Identity, present: FleetCopies
) -> ObjectPlan:
    """Return the plan of one object: in its scheduled clusters, and of undesired copies."""
    if identity in manifests.left:
        return ObjectPlan(problems=(manifests.left[identity],), copies=tuple(present.copies))
    schedule, snapshot = comparer.schedule, comparer.snapshot
    is_placed = identity in schedule.bindings and identity not in schedule.frozen
    part = _diff_placed(manifests, comparer, identity, present) if is_placed else ObjectPlan()
    changes, problems, frozen = [*part.changes], [*part.problems], {}
    for lost in lost_copies(identity, present, snapshot.members, losses):
        if lost.fate is DeletionAction.FROZEN:
            frozen[lost.cluster] = lost.why
            continue
        change, problem = lose(schedule, snapshot, lost, part.holds.get(lost.cluster))
        changes += [change] if change else []
        problems += [problem] if problem else []
    problems += stripped_copies(identity, present, schedule, snapshot)
    return replace(part, changes=tuple(changes), problems=tuple(problems), copies=tuple(present.copies), frozen=frozen)


def _diff_placed(manifests: Manifests, comparer: Comparer, identity: Identity, present: FleetCopies) -> ObjectPlan:
    schedule, snapshot = comparer.schedule, comparer.snapshot
    target = dict(schedule.bindings[identity].targets)
    old = {**snapshot.placed_elsewhere(identity), **present.copies} if snapshot.elsewhere else present.copies
    wanted = manifests.of(identity, target)
    compared = {name: _compare(manifests, comparer, each, present.owners.get(name)) for name, each in wanted.items()}
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
        ending = None
        if comparison.live is not None and is_terminating(comparison.live):
            ending = terminating(comparison.live, cluster, wanted[cluster].source, is_wanted=True)
        if cluster not in state.targets:
            # A run that stays where it began is not begun a second time here.
            instead[cluster] = None
            continue
        if cluster in state.holds:
            if (smaller := held.get(cluster)) is not None:
                instead[cluster] = smaller[0]
                changes += reduced_later(smaller[1], comparison, state.holds[cluster])
        elif comparison.change is not None:
            change = as_assigned(comparison.change, old.get(cluster), target[cluster])
            # It waits by itself, for a run elsewhere, or for its policy.
            hold = change.hold or state.waits.get(cluster) or schedule.hold(identity, cluster)
            if ending is not None and change.action is Action.REPLACE:
                hold = Hold(HeldBy.OTHERS, ending.message)
            changes.append(replace(change, hold=hold) if hold else change)
        problems += [problem for problem in (comparison.problem, comparison.remark, ending) if problem is not None]
    problems += runs_elsewhere(schedule, snapshot, identity, target, state.targets)
    problems += undecided_in(schedule, identity, snapshot.elsewhere & target.keys())
    if identity[:2] == ("batch", "Job"):
        problems += lack_of_completions(schedule, identity, snapshot)
    if changes:
        previous = snapshot.observations.previous.get(identity)
        changes = list(confirmed_shares(schedule, as_arrived(changes, previous, target, old), target, old))
    return ObjectPlan(
        changes=tuple(changes), problems=tuple(problems), instead=instead, holds=state.holds, at_rest=at_rest
    )


def _as_held(
    manifests: Manifests, comparer: Comparer, identity: Identity, wanted: Mapping[str, tuple[Replicas, Replicas]]
) -> dict[str, tuple[Manifest, Comparison]]:
    """Return shrinking copies: manifests with present replicas, and differences. `wanted`: replicas after, before."""
    shrinking: dict[str, tuple[Manifest, Comparison]] = {}
    for name, (after, before) in wanted.items():
        is_less = after is not None and before is not None and after < before
        manifest = manifests.with_replicas(identity, name, before) if is_less else None
        if manifest is not None:
            shrinking[name] = manifest, _compare(manifests, comparer, manifest)
    return shrinking


def _compare(
    manifests: Manifests, comparer: Comparer, manifest: Manifest, ownership: Ownership | None = None
) -> Comparison:
    """Return the comparison in a cluster that was read: of kinds that are not served there, why."""
    schedule, identity = comparer.schedule, manifest.identity
    member = comparer.snapshot.members[manifest.cluster]
    assert isinstance(member, Read), "there are manifests where it was read"
    live, is_of_other_version = member.live(identity), False
    is_served, definition = manifest.gvk in member.served, schedule.definition_of(identity[:2])
    if definition is not None and member.name not in schedule.bindings[definition].clusters:
        definition = None
    versions = served_versions(schedule.fleet.templates[definition].body) if definition is not None else []
    if not is_served and manifest.gvk.api_version not in member.silent:
        match member.live(definition) if definition is not None else Absent():
            case Present(object=crd) if manifest.gvk.version in served_versions(crd.body):
                # An API server that has just started serves the kinds of definitions last, and keeps their objects.
                live = Unknown(why=f"{manifest.gvk.text} is not served yet, although its definition is there")
            case _ if manifest.gvk.version not in versions:
                return Comparison(problem=not_served(manifest, member, versions))
            case crd:
                live, is_of_other_version = Absent(), isinstance(crd, Present)
    elif definition is not None and manifest.gvk.version not in versions and not schedule.hold(definition, member.name):
        rendered = manifests.with_replicas(definition, member.name, None)
        if rendered is not None and manifest.gvk.version not in served_versions(rendered.body):
            return Comparison(problem=not_served(manifest, member, versions))
    if is_served and bool(identity.namespace) != member.served[manifest.gvk]:
        return Comparison(problem=of_other_scope(manifest, member))
    comparison = comparer.compare(manifest, live, ownership)
    if isinstance(live, Absent) and comparison.change is not None and schedule.hold(identity, member.name) is None:
        # A Namespace can be seen; the definition of a kind is there where the kind is served.
        there = [
            needed
            for needed in prerequisites(schedule, identity)
            if (not isinstance(member.live(needed), Absent) if needed.kind == "Namespace" else is_served)
        ]
        if (wait := waits_for_prerequisite(schedule, identity, member.name, there)) is not None:
            return replace(comparison, change=replace(comparison.change, hold=wait))
    if not is_served and comparison.change is not None:
        reason = Reason(rule="unverified", text="its kind is defined in the same plan, so nothing was compared")
        # It may be there, of a version that is served until then: nobody has deleted it.
        cause = Cause.DECLARED if is_of_other_version else comparison.change.cause
        return replace(comparison, change=replace(comparison.change, reason=reason, cause=cause))
    return comparison
