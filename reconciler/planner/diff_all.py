"""The changes of each cluster: due ones, held ones, and problems.

Every object is compared once; moves, losses and holds follow from the comparisons. Source: design#effective-placement;
design#taken-over; design#cluster-leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Member, NotRead, Read
from reconciler.api.plan import Change, Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Copy, Identity
from reconciler.containment import INTERNAL_ERROR, Contained, try_call
from reconciler.diff import Comparer, OwnershipIndex
from reconciler.observations import Rest
from reconciler.planner.causes import of_clusters
from reconciler.planner.deletion import LossInputs
from reconciler.planner.diff_object import ObjectPlan, diff_object
from reconciler.render import Manifests, fault_of
from reconciler.scheduler import Schedule


class PlanResult(Struct, frozen=True, kw_only=True):
    """Changes in no particular order, the manifests in force per cluster, and the problems met.

    `problems`: of each identity that has some. `cluster_problems`: of clusters as a whole.
    """

    changes: tuple[Change, ...]
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    problems: Mapping[Identity, tuple[Problem, ...]]
    cluster_problems: tuple[Problem, ...] = ()
    is_complete: bool
    managed: Mapping[str, int] = field(default_factory=dict)
    """Our objects per cluster that was read."""
    at_rest: Mapping[str, Mapping[Identity, Rest]] = field(default_factory=dict)
    """New records of copies without pending writes, by cluster."""
    frozen: Mapping[Copy, str] = field(default_factory=dict)
    """The reasons why our undesired copies stay, by cluster and identity: a broken file may want them."""


def diff_all(manifests: Manifests, schedule: Schedule, *, are_shared: bool = False) -> PlanResult:
    """Compare every object with every cluster that was read. `are_shared`: as in `Comparer`."""
    snapshot, inputs = manifests.snapshot, _Inputs(manifests, schedule, are_shared=are_shared)
    changes: list[Change] = []
    problems: dict[Identity, tuple[Problem, ...]] = {}
    ours: Counter[str] = Counter()
    at_rest: dict[str, dict[Identity, Rest]] = {}
    frozen: dict[Copy, str] = {}
    instead: dict[str, dict[Identity, Manifest | None]] = {}
    is_sound = True
    bound = schedule.bindings.keys() if snapshot.only is None else schedule.bindings.keys() & snapshot.only
    for identity in sorted({*bound, *inputs.standings.identities}):
        found, faults = inputs.plan(identity)
        is_sound = is_sound and not faults
        changes += found.changes
        ours.update(found.copies)
        frozen.update({(cluster, identity): why for cluster, why in found.frozen.items()})
        for cluster, manifest in found.instead.items():
            instead.setdefault(cluster, {})[identity] = manifest
        for cluster, rest in found.at_rest.items():
            at_rest.setdefault(cluster, {})[identity] = rest
        if found.problems or faults:
            problems[identity] = (*found.problems, *faults)
    in_force = {
        cluster: {i: one for i, one in {**manifests.by_cluster[cluster], **others}.items() if one is not None}
        for cluster, others in instead.items()
    }
    members, ledger = snapshot.members.values(), snapshot.journal.ledger
    return PlanResult(
        changes=tuple(changes),
        manifests={**manifests.by_cluster, **in_force},
        problems=problems,
        cluster_problems=tuple(of_clusters(members, snapshot.observations.clusters)),
        is_complete=is_sound and not any(isinstance(member, NotRead) or member.unread for member in members),
        managed={
            one.name: len(ledger.get(one.name, ()))
            if isinstance(one, NotRead) or snapshot.only is not None
            else ours[one.name]
            for one in members
        },
        at_rest=at_rest,
        frozen=frozen,
    )


class _Inputs:
    """The inputs of each object's plan."""

    def __init__(self, manifests: Manifests, schedule: Schedule, *, are_shared: bool) -> None:
        self._manifests = manifests
        self._schedule = schedule
        self._are_shared = are_shared
        self._comparer = Comparer(schedule, manifests.snapshot, are_shared=are_shared)
        self._losses = LossInputs(schedule)
        self.standings = OwnershipIndex(manifests.snapshot)

    def plan(self, identity: Identity) -> tuple[ObjectPlan, tuple[Problem, ...]]:
        """Return the plan of one object, and the faults of the program that it brings out.

        Source: design#boundaries. A fault of our own, or of an interpreter that somebody installed, is met first by
        the object that brings it out; the objects beside it, and its copies in other clusters, go on.
        """
        left = self._manifests.of(identity, self._manifests.by_cluster)
        if identity in self._manifests.failed:
            return ObjectPlan(instead=dict.fromkeys(left)), (self._manifests.failed[identity],)
        seen = self.standings.of(identity)
        found, fault = try_call(diff_object, self._manifests, self._comparer, self._losses, identity, seen)
        if found is not None:
            return found, ()
        # Without the copies that bring the fault out, which count as unread.
        fleet, members = self._schedule.fleet, self._manifests.snapshot.members
        clusters = [name for name, one in members.items() if isinstance(one, Read) and identity in one.objects]
        faults = {}
        for cluster in clusters:
            alone = self._plan_without(identity, [name for name in clusters if name != cluster])
            if alone.fault is not None:
                faults[cluster] = alone.fault
        if faults:
            found, fault = self._plan_without(identity, list(faults))
            if found is not None:
                return found, tuple([fault_of(fleet, identity, one, cluster) for cluster, one in faults.items()])
        return ObjectPlan(instead=dict.fromkeys(left)), (fault_of(fleet, identity, fault),)

    def _plan_without(self, identity: Identity, clusters: list[str]) -> Contained[ObjectPlan]:
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
