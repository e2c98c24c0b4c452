"""The order of deletions by need: an object leaves after what needs it.

Delete a dependency after its owners; if an owner is released, release it too. Source: design#dependency-unneeded.
Delete the parts of an operator after the objects that it has to finalize: without it their finalizers stay, and so do
they. Source: docs/concepts/deletion.md; Kubernetes, "Finalizers".
An object whose marks a person has taken off counts as released. One that stays for any other reason (a guard, a
suspension, a finalizer, a missing witness) keeps what it needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet, FleetSettings, Template
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import Member, Read
from reconciler.model.plan import Action, Change
from reconciler.model.policy import Companion
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject
from reconciler.stages.dependencies import CompanionIndex, Sources, namespace_identity, operator_parts
from reconciler.stages.documents import BUILT_IN
from reconciler.stages.ownership import finalizers_of_others, is_marked
from reconciler.stages.placement import closed_by_order
from reconciler.stages.plan.order import is_follower
from reconciler.stages.templates import references_of

Needs = Mapping[Identity, Sequence[Identity]]
"""By object what needs it and has to leave before it."""

_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")


class Surroundings(NamedTuple):
    """What there is beside the changes: members, what was applied to them, what is bound where, a person's orders."""

    members: Mapping[str, Member]
    ledger: Mapping[str, Mapping[Identity, AppliedRow]]
    bindings: Mapping[Identity, Binding]
    closed: Mapping[str, str]
    """Why nothing may be written, by the scope of a person's order."""
    settings: FleetSettings
    interpreters: Registry

    def is_let_go(self, cluster: str, identity: Identity) -> bool:
        """Whether an object is there that has no marks of ours any more."""
        member = self.members.get(cluster)
        live = member.objects.get(identity) if isinstance(member, Read) else None
        return live is not None and not is_marked(live, self.settings.name, self.settings.previous_names)

    def finalizers(self, cluster: str, identity: Identity) -> tuple[str, ...]:
        """The finalizers of an object that the cluster itself does not take off; empty where it was not seen."""
        member = self.members.get(cluster)
        live = member.objects.get(identity) if isinstance(member, Read) else None
        return finalizers_of_others(live) if live is not None else ()


def after_owners(changes: tuple[Change, ...], there: Surroundings) -> tuple[Change, ...]:
    """The changes; what is deleted waits for what needs it, and a dependency is released with one of its owners.

    Called again with what guards hold, it lets what these need wait, too.
    """
    deleted: dict[str, list[Change]] = {}
    for change in filter(_is_due, changes):
        deleted.setdefault(change.cluster, []).append(change)
    for cluster, due in deleted.items():
        leaving = list(_leaving(cluster, there))
        owners = _owners(leaving, due, there.interpreters)
        finalized = _finalized(cluster, leaving, due, owners, there)
        if not finalized and not any(map(is_follower, due)):
            continue
        # What waits may be what others wait for.
        while (judged := tuple(_judged(changes, cluster, owners, finalized, there))) != changes:
            changes = judged
    return changes


def _is_due(change: Change) -> bool:
    return change.action is Action.DELETE and change.held is None


def _owners(leaving: Sequence[Template], due: Sequence[Change], interpreters: Registry) -> Needs:
    """By object that is deleted what refers to it and is no longer wanted in the cluster either."""
    templates = {found.identity: _template(found.gvk, found.identity, found.before or {}) for found in due}
    fleet = Fleet(revision="", templates=templates)
    sources, companions = Sources.among(fleet, interpreters), CompanionIndex(fleet, interpreters)
    found: dict[Identity, list[Identity]] = {}
    for owner in leaving:
        # Its grant may have gone before, or stay.
        refs = references_of(owner, interpreters)
        needed = {target for ref in refs for target in sources.ever_needed(ref, owner.identity)}
        needed.update(identity for identity, _ in companions.of(owner, tuple(Companion), with_dependencies=True))
        for identity in needed - {owner.identity}:
            found.setdefault(identity, []).append(owner.identity)
    return found


def _finalized(
    cluster: str, leaving: Sequence[Template], due: Sequence[Change], owners: Needs, there: Surroundings
) -> Needs:
    """By part of an operator that is deleted the leaving objects that the operator has to finalize."""
    custom = [one for one in leaving if _is_finalized(one.identity, there.finalizers(cluster, one.identity))]
    if not custom:
        return {}
    bodies = {one.identity: one.body for one in leaving} | dict(_staying(cluster, there))
    names = {change.identity for change in due}
    found: defaultdict[Identity, set[Identity]] = defaultdict(set)
    for kind in sorted({finalized for one in custom for finalized in _kinds(one)}):
        parts = operator_parts(kind, bodies, there.interpreters)
        parts |= {needed for needed, by in owners.items() if not parts.isdisjoint(by)}
        parts |= {namespace_identity(part.namespace) for part in parts if part.namespace}
        for part in parts & names:
            found[part].update(one.identity for one in custom if kind in _kinds(one))
    return _without_circles(found, owners)


def _is_finalized(identity: Identity, finalizers: Collection[str]) -> bool:
    """Whether an operator may have to act before the object is gone. Deleting a definition deletes its objects."""
    return bool(finalizers) or identity[:2] not in BUILT_IN or identity[:2] == _DEFINITION


def _kinds(one: Template) -> frozenset[tuple[str, str]]:
    """The kinds whose operators finalize an object: its own, and for a definition the kind that it defines."""
    if one.identity[:2] != _DEFINITION:
        return frozenset({one.identity[:2]})
    spec = one.body.get("spec")
    names = spec.get("names") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(names, Mapping):
        return frozenset()
    return frozenset({(str(spec.get("group")), str(names.get("kind")))})


def _without_circles(finalized: Mapping[Identity, Collection[Identity]], owners: Needs) -> Needs:
    """The needs without those of an object that itself leaves after the part: each would wait for the other."""

    def waits_for(identity: Identity) -> Iterable[Identity]:
        return (*owners.get(identity, ()), *finalized.get(identity, ()))

    return {
        part: tuple(sorted(one for one in objects if one != part and not _reaches(one, part, waits_for)))
        for part, objects in finalized.items()
    }


def _reaches(start: Identity, goal: Identity, steps: Callable[[Identity], Iterable[Identity]]) -> bool:
    seen, todo = {start}, [start]
    while todo:
        for identity in steps(todo.pop()):
            if identity == goal:
                return True
            if identity not in seen:
                seen.add(identity)
                todo.append(identity)
    return False


def _leaving(cluster: str, there: Surroundings) -> Iterator[Template]:
    """What we applied to a cluster and is not bound to it any more, as it is there or was sent."""
    member = there.members.get(cluster)
    absent = member.absent if isinstance(member, Read) else frozenset()
    for identity in sorted(there.ledger.get(cluster, {})):
        if identity not in absent and not _is_wanted(cluster, identity, there):
            body = _body(cluster, identity, there)
            if body is not None:
                yield _template(there.ledger[cluster][identity].gvk, identity, body)


def _staying(cluster: str, there: Surroundings) -> Iterator[tuple[Identity, JsonObject]]:
    """What we applied to a cluster and is bound to it, as it is there or was sent."""
    for identity in there.ledger.get(cluster, {}):
        if _is_wanted(cluster, identity, there):
            body = _body(cluster, identity, there)
            if body is not None:
                yield identity, body


def _is_wanted(cluster: str, identity: Identity, there: Surroundings) -> bool:
    binding = there.bindings.get(identity)
    return binding is not None and cluster in binding.clusters


def _body(cluster: str, identity: Identity, there: Surroundings) -> JsonObject | None:
    member = there.members.get(cluster)
    live = member.objects.get(identity) if isinstance(member, Read) else None
    return live.body if live is not None else there.ledger[cluster][identity].recorded


def _template(gvk: GVK, identity: Identity, body: JsonObject) -> Template:
    return Template(gvk=gvk, identity=identity, body=body, source=NOWHERE, digest="")


def _judged(
    changes: Sequence[Change], cluster: str, owners: Needs, finalized: Needs, there: Surroundings
) -> Iterator[Change]:
    others = {change.identity: _as_ordered(change, there) for change in changes if change.cluster == cluster}
    for change in changes:
        judged = change
        if change.cluster == cluster and _is_due(change):
            if is_follower(change) and change.identity in owners:
                judged = _after(change, owners[change.identity], others, there)
            if _is_due(judged) and change.identity in finalized:
                judged = _after_finalized(judged, finalized[change.identity], others, there)
        yield judged


def _as_ordered(change: Change, there: Surroundings) -> Change:
    """The change as a person's orders leave it."""
    return replace(change, held=change.held or closed_by_order(there.closed, change.identity, change.cluster))


def _after(
    change: Change, needed_by: Sequence[Identity], changes: Mapping[Identity, Change], there: Surroundings
) -> Change:
    """A dependency: released with an owner that is released, deleted after owners that are deleted."""
    if any(there.is_let_go(change.cluster, identity) for identity in needed_by):
        return replace(change, action=Action.RELEASE, confirm="")
    going = {identity: changes.get(identity) for identity in needed_by}
    for identity, owner in going.items():
        if owner is not None and owner.action is Action.RELEASE:
            held = f"waits until {identity} is released" if owner.held is not None else None
            return replace(change, action=Action.RELEASE, confirm="", held=held)
    for identity, owner in going.items():
        if owner is None or owner.held is not None:
            return replace(change, held=_until_left(change.cluster, identity, there))
    return replace(change, after=frozenset(going))


def _after_finalized(
    change: Change, finalized: Sequence[Identity], changes: Mapping[Identity, Change], there: Surroundings
) -> Change:
    """A part of an operator: deleted after what it finalizes; what is released or let go needs it no longer."""
    after = set(change.after)
    for identity in finalized:
        other = changes.get(identity)
        if there.is_let_go(change.cluster, identity) or (other is not None and other.action is Action.RELEASE):
            continue
        if other is None or other.held is not None:
            return replace(change, held=_until_left(change.cluster, identity, there))
        after.add(identity)
    return replace(change, after=frozenset(after))


def _until_left(cluster: str, identity: Identity, there: Surroundings) -> str:
    keepers = there.finalizers(cluster, identity)
    return f"waits until {identity} has left" + (f", which {', '.join(keepers)} keeps" if keepers else "")
