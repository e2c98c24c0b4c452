"""What follows others goes after them: with what is released it is released, and while its owner stays it stays.

Source: design#dependency-unneeded: release, or delete after what needed it.
What a person has let go, by taking a mark off, counts as released.
Why the owner stays makes no difference: a guard or a suspension holds it, it has a finalizer, a witness is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from reconciler.stages.dependencies import CompanionIndex, Sources
from reconciler.stages.ownership import is_marked
from reconciler.stages.placement import closed_by_order
from reconciler.stages.plan.order import is_follower
from reconciler.stages.templates import references_of


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


def after_owners(changes: tuple[Change, ...], there: Surroundings) -> tuple[Change, ...]:
    """The changes; a follower that is deleted waits for its owners, or is released with one of them.

    Called again with what guards hold, it lets the followers of that wait, too.
    """
    followers: dict[str, list[Change]] = {}
    for change in filter(_is_deleted_follower, changes):
        followers.setdefault(change.cluster, []).append(change)
    for cluster, deleted in followers.items():
        owners = _owners(cluster, deleted, there)
        # A follower that waits may have followers of its own.
        while (judged := tuple(_judged(changes, cluster, owners, there))) != changes:
            changes = judged
    return changes


def _is_deleted_follower(change: Change) -> bool:
    return change.action is Action.DELETE and change.held is None and is_follower(change)


def _owners(cluster: str, followers: Sequence[Change], there: Surroundings) -> Mapping[Identity, Sequence[Identity]]:
    """By follower what needs it and is no longer wanted in the cluster either."""
    templates = {found.identity: _template(found.gvk, found.identity, found.before or {}) for found in followers}
    fleet = Fleet(revision="", templates=templates)
    sources, companions = Sources.among(fleet, there.interpreters), CompanionIndex(fleet, there.interpreters)
    found: dict[Identity, list[Identity]] = {}
    for owner in _leaving(cluster, there):
        # Its grant may have gone before, or stay.
        refs = references_of(owner, there.interpreters)
        needed = {target for ref in refs for target in sources.ever_needed(ref, owner.identity)}
        needed.update(identity for identity, _ in companions.of(owner, tuple(Companion), with_dependencies=True))
        for identity in needed - {owner.identity}:
            found.setdefault(identity, []).append(owner.identity)
    return found


def _leaving(cluster: str, there: Surroundings) -> Iterator[Template]:
    """What we applied to a cluster and is not bound to it any more, as it is there or was sent."""
    member = there.members.get(cluster)
    objects = member.objects if isinstance(member, Read) else {}
    absent = member.absent if isinstance(member, Read) else frozenset()
    rows = there.ledger.get(cluster, {})

    def is_wanted(identity: Identity) -> bool:
        binding = there.bindings.get(identity)
        return binding is not None and cluster in binding.clusters

    for identity in sorted(identity for identity in rows if identity not in absent and not is_wanted(identity)):
        body = objects[identity].body if identity in objects else rows[identity].recorded
        if body is not None:
            yield _template(rows[identity].gvk, identity, body)


def _template(gvk: GVK, identity: Identity, body: JsonObject) -> Template:
    return Template(gvk=gvk, identity=identity, body=body, source=NOWHERE, digest="")


def _judged(
    changes: Sequence[Change], cluster: str, owners: Mapping[Identity, Sequence[Identity]], there: Surroundings
) -> Iterator[Change]:
    by_identity = {change.identity: _as_ordered(change, there) for change in changes if change.cluster == cluster}
    for change in changes:
        concerns = change.cluster == cluster and change.identity in owners and _is_deleted_follower(change)
        yield _after(change, owners[change.identity], by_identity, there) if concerns else change


def _as_ordered(change: Change, there: Surroundings) -> Change:
    """The change as a person's orders leave it."""
    return replace(change, held=change.held or closed_by_order(there.closed, change.identity, change.cluster))


def _after(
    change: Change, needed_by: Sequence[Identity], changes: Mapping[Identity, Change], there: Surroundings
) -> Change:
    if any(there.is_let_go(change.cluster, identity) for identity in needed_by):
        return replace(change, action=Action.RELEASE, confirm="")
    going = {identity: changes.get(identity) for identity in needed_by}
    for identity, owner in going.items():
        if owner is not None and owner.action is Action.RELEASE:
            held = f"waits until {identity} is released" if owner.held is not None else None
            return replace(change, action=Action.RELEASE, confirm="", held=held)
    for identity, owner in going.items():
        if owner is None or owner.held is not None:
            return replace(change, held=f"waits until {identity} has left")
    return replace(change, after=frozenset(going))
