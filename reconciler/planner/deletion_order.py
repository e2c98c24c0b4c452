"""The order of deletions by need: an object leaves after what needs it.

Delete a dependency after its owners, release it with one. Source: design#dependency-unneeded. Delete the parts of an
operator after the objects that it has to finalize. Source: docs/concepts/deletion.md; Kubernetes, "Finalizers". An
object whose marks are off counts as released; one that stays for another reason keeps what it needs. What moves and
runs no pods stays with the workloads of its namespace that still serve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.content import Content, JsonObject
from reconciler.api.fleet import Fleet, Template
from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold
from reconciler.api.policies import Companion
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import GVK, Identity
from reconciler.documents import BUILT_IN, defined_kind
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.incremental import by_key
from reconciler.kinds.registry import Registry
from reconciler.observations import JobProgress, run_of
from reconciler.ownership import finalizers_of_others, fleet_names, is_marked
from reconciler.placement import closed_by_order
from reconciler.planner.order import is_follower
from reconciler.scheduler import CompanionIndex, Schedule, Sources, namespace_identity, operator_parts
from reconciler.templates import references_of

Needs = Mapping[Identity, Sequence[Identity]]
"""By object what needs it and has to leave before it."""

_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_CONTAINERS = (("", "Namespace"), _DEFINITION)


def after_owners(changes: tuple[Change, ...], schedule: Schedule, snapshot: FleetSnapshot) -> tuple[Change, ...]:
    """Return the changes: deletions wait for dependents (held ones too), dependencies are released with an owner."""
    for cluster, due in by_key((change.cluster, change) for change in changes if _leaves(change)).items():
        member = snapshot.members.get(cluster)
        absent = member.absent if isinstance(member, Read) else frozenset()
        leaving = sorted(
            (one for one in _applied(cluster, schedule, snapshot, is_bound=False) if one.identity not in absent),
            key=lambda one: one.identity,
        )
        owners = _owners(leaving, due, snapshot.interpreters)
        finalized = _finalized(cluster, leaving, due, owners, schedule, snapshot)
        is_moving = any(change.cause is Cause.PLACEMENT for change in due)
        if not (finalized or is_moving or any(is_follower(one) or one.identity[:2] in _CONTAINERS for one in due)):
            continue
        # What waits may be what others wait for.
        while (judged := tuple(_judged(changes, cluster, owners, finalized, snapshot))) != changes:
            changes = judged
    return changes


def _leaves(change: Change) -> bool:
    """Return whether a change that is due deletes an object, or releases what others are in."""
    is_released = change.action is Action.RELEASE and change.identity[:2] in _CONTAINERS
    return change.held is None and (change.action is Action.DELETE or is_released)


def _owners(leaving: Sequence[Template], due: Sequence[Change], interpreters: Registry) -> Needs:
    """Return by deleted object the leaving objects that refer to it."""
    templates = {change.identity: _template(change.gvk, change.identity, change.before or {}) for change in due}
    sources = Sources.among(Fleet(revision="", templates=templates), interpreters)
    companions = CompanionIndex(sources, interpreters)
    owners: dict[Identity, list[Identity]] = {}
    for owner in leaving:
        # Its grant may have gone before, or stay.
        refs = references_of(owner, interpreters)
        needed = {target for ref in refs for target in sources.ever_needed(ref, owner.identity)}
        needed.update(identity for identity, _ in companions.of(owner, tuple(Companion), with_dependencies=True))
        for identity in needed - {owner.identity}:
            owners.setdefault(identity, []).append(owner.identity)
    return owners


def _finalized(
    cluster: str,
    leaving: Sequence[Template],
    due: Sequence[Change],
    owners: Needs,
    schedule: Schedule,
    snapshot: FleetSnapshot,
) -> Needs:
    """Return by deleted part of an operator the leaving objects that the operator has to finalize."""
    # An operator may have to act first. Deleting a definition deletes its objects.
    custom = [
        # A definition counts for the kind that it defines.
        (defined_kind(one.body) if one.identity[:2] == _DEFINITION else one.identity[:2], one.identity)
        for one in leaving
        if one.identity[:2] not in BUILT_IN
        or one.identity[:2] == _DEFINITION
        or _finalizers(snapshot, cluster, one.identity)
    ]
    if not custom:
        return {}
    there = (*leaving, *_applied(cluster, schedule, snapshot, is_bound=True))
    bodies = {one.identity: one.body for one in there}
    names = {change.identity for change in due}
    by_part: defaultdict[Identity, set[Identity]] = defaultdict(set)
    for kind in sorted({kind for kind, _ in custom if kind is not None}):
        parts = operator_parts(kind, bodies, snapshot.interpreters)
        parts |= {needed for needed, by in owners.items() if not parts.isdisjoint(by)}
        parts |= {namespace_identity(part.namespace) for part in parts if part.namespace}
        for part in parts & names:
            by_part[part].update(identity for finalized, identity in custom if finalized == kind)
    # Without those of an object that itself leaves after the part: each would wait for the other.
    return {
        part: tuple(sorted(one for one in objects if one != part and not _waits_for(one, part, owners, by_part)))
        for part, objects in by_part.items()
    }


def _waits_for(
    start: Identity, goal: Identity, owners: Needs, finalized: Mapping[Identity, Collection[Identity]]
) -> bool:
    visited, todo = {start}, [start]
    while todo:
        at = todo.pop()
        steps = {*owners.get(at, ()), *finalized.get(at, ())} - visited
        if goal in steps:
            return True
        visited |= steps
        todo += steps
    return False


def _applied(cluster: str, schedule: Schedule, snapshot: FleetSnapshot, *, is_bound: bool) -> Iterator[Template]:
    """Yield applied objects that are bound to the cluster, or are no more, live or as sent."""
    for identity, row in snapshot.journal.ledger.get(cluster, {}).items():
        if schedule.is_bound(identity, cluster) is is_bound:
            live = snapshot.live(cluster, identity)
            body = live.body if live is not None else row.recorded
            if body is not None:
                yield _template(row.gvk, identity, body)


def _template(gvk: GVK, identity: Identity, body: JsonObject) -> Template:
    return Template(gvk=gvk, identity=identity, content=Content(tree=body), source=NOWHERE)


def _judged(
    changes: Sequence[Change], cluster: str, owners: Needs, finalized: Needs, snapshot: FleetSnapshot
) -> Iterator[Change]:
    closed = snapshot.observations.closed
    others = {
        # As a person's orders leave it.
        change.identity: replace(change, hold=change.hold or closed_by_order(closed, change.identity, cluster))
        for change in changes
        if change.cluster == cluster
    }
    kinds = snapshot.interpreters
    serving = {
        one.namespace: one
        for one, other in sorted(others.items(), reverse=True)
        if other.action is Action.DELETE and other.held is not None and kinds.of(*one[:2]).runs_pods
        and run_of(other.before or {}) is not JobProgress.FINISHED
    }  # fmt: skip
    for change in changes:
        judged = change
        if change.cluster == cluster and _leaves(change):
            if change.action is Action.DELETE and is_follower(change) and change.identity in owners:
                judged = _after(change, owners[change.identity], others, snapshot)
            elif change.cause is Cause.PLACEMENT and not kinds.of(*change.identity[:2]).runs_pods:
                stays = serving.get(change.identity.namespace)
                judged = replace(change, hold=_until_left(cluster, stays, snapshot)) if stays is not None else change
            if judged.action is Action.DELETE and _leaves(judged) and change.identity in finalized:
                judged = _after_finalized(judged, finalized[change.identity], others, snapshot)
            if _leaves(judged) and change.identity[:2] in _CONTAINERS:
                judged = _after_contents(judged, others, snapshot)
        yield judged


def _after_contents(change: Change, changes: Mapping[Identity, Change], snapshot: FleetSnapshot) -> Change:
    """Return the end of a Namespace or definition, after what is held in it or of its kind."""
    kind, name = defined_kind(change.before or {}), change.identity.name
    for one, other in changes.items():
        is_inside = one[:2] == kind if change.identity[:2] == _DEFINITION else one.namespace == name
        if is_inside and other.held is not None and other.before is not None:
            return replace(change, hold=_until_left(change.cluster, one, snapshot))
    return change


def _after(
    change: Change, needed_by: Sequence[Identity], changes: Mapping[Identity, Change], snapshot: FleetSnapshot
) -> Change:
    """Return a dependency's deletion, after owners that are deleted, or its release with one that is released."""
    if any(_is_released(snapshot, change.cluster, identity) for identity in needed_by):
        return replace(change, action=Action.RELEASE, confirm="")
    going = {identity: changes.get(identity) for identity in needed_by}
    for identity, owner in going.items():
        if owner is not None and owner.action is Action.RELEASE:
            hold = Hold(HeldBy.OTHERS, f"waits until {identity} is released") if owner.hold is not None else None
            return replace(change, action=Action.RELEASE, confirm="", hold=hold)
    for identity, owner in going.items():
        if owner is None or owner.held is not None:
            return replace(change, hold=_until_left(change.cluster, identity, snapshot))
    return replace(change, after=frozenset(going))


def _after_finalized(
    change: Change, finalized: Sequence[Identity], changes: Mapping[Identity, Change], snapshot: FleetSnapshot
) -> Change:
    """Return an operator part's deletion, after the objects it finalizes; released ones need it no longer."""
    after = set(change.after)
    for identity in finalized:
        other = changes.get(identity)
        if _is_released(snapshot, change.cluster, identity) or (other is not None and other.action is Action.RELEASE):
            continue
        if other is None or other.held is not None:
            return replace(change, hold=_until_left(change.cluster, identity, snapshot))
        after.add(identity)
    return replace(change, after=frozenset(after))


def _is_released(snapshot: FleetSnapshot, cluster: str, identity: Identity) -> bool:
    """Tell whether an object is there that has no marks of ours any more."""
    live = snapshot.live(cluster, identity)
    return live is not None and not is_marked(live, fleet_names(snapshot.fleet.settings))


def _finalizers(snapshot: FleetSnapshot, cluster: str, identity: Identity) -> tuple[str, ...]:
    """Return the finalizers of an object that the cluster itself does not take off; empty where it was not seen."""
    live = snapshot.live(cluster, identity)
    return finalizers_of_others(live) if live is not None else ()


def _until_left(cluster: str, identity: Identity, snapshot: FleetSnapshot) -> Hold:
    keepers = _finalizers(snapshot, cluster, identity)
    which = f", which {', '.join(keepers)} keeps" if keepers else ""
    return Hold(HeldBy.OTHERS, f"waits until {identity} has left{which}")
