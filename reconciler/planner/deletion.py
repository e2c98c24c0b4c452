"""The copies of ours that are no longer wanted in a cluster, and their treatment by cause.

Source: design#template-leaves; design#policy-leaves; design#cluster-leaves; design#moved-by-a-tick;
design#dependency-unneeded; design#frozen. design#keep: preserveResourcesOnDeletion; the last applied value is active,
and a new value in the same commit counts only if it keeps more. design#absence; design#promise-1; design#promise-2;
design#promise-3: nothing is concluded from a failed or partial reading. design#release; design#before-a-deletion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.clusters import LiveObject, Member, Read
from reconciler.api.content import Content, dig
from reconciler.api.fleet import Template
from reconciler.api.plan import Action, Cause, Change, HeldBy, Hold
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import Identity, PolicyRef
from reconciler.diff import FleetCopies
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.ownership import (
    ObjectOwner,
    OwnershipRecord,
    field_manager,
    fleet_names,
    is_terminating,
    missing_witness,
    terminating,
)
from reconciler.placement import suspended_by
from reconciler.policy import FrozenReaches, PolicyIndex, winner
from reconciler.scheduler import Schedule
from reconciler.templates import why_confirmed


class LossCause(StrEnum):
    """The reason why a copy is no longer desired."""

    TEMPLATE_LEFT = "the template left the store"
    POLICY_LEFT = "its policy left or no longer selects it, and nothing else claims it"
    PLACEMENT_LEFT = "the cluster left the placement"
    MOVED_BY_TICK = "its replicas were moved away by a tick"
    DEPENDENCY_UNNEEDED = "nothing that refers to it lives there any more"
    UNKNOWN = "its file is broken, or its cluster is unreachable or removed from the store"


class DeletionAction(StrEnum):
    """Its treatment. A move is: create elsewhere, wait until that is healthy, then delete."""

    DELETE = "delete"
    RELEASE = "release"
    MOVE = "move"
    FROZEN = "frozen"


_ACK_KEEP = {
    LossCause.TEMPLATE_LEFT: DeletionAction.RELEASE,
    LossCause.POLICY_LEFT: DeletionAction.RELEASE,
    LossCause.PLACEMENT_LEFT: DeletionAction.MOVE,
    LossCause.MOVED_BY_TICK: DeletionAction.MOVE,
    LossCause.DEPENDENCY_UNNEEDED: DeletionAction.RELEASE,
    LossCause.UNKNOWN: DeletionAction.FROZEN,
}
_ACK_DELETE = _ACK_KEEP | {
    LossCause.TEMPLATE_LEFT: DeletionAction.DELETE,
    LossCause.POLICY_LEFT: DeletionAction.DELETE,
    LossCause.DEPENDENCY_UNNEEDED: DeletionAction.DELETE,
}
_KARMADA_KEEP = _ACK_KEEP | {LossCause.PLACEMENT_LEFT: DeletionAction.RELEASE}
# Karmada never deletes when a policy leaves: its bindings outlive their policy.
_KARMADA_DELETE = _ACK_DELETE | {LossCause.POLICY_LEFT: DeletionAction.RELEASE}

_CAUSE = {
    LossCause.TEMPLATE_LEFT: Cause.REMOVED,
    LossCause.POLICY_LEFT: Cause.POLICY,
    LossCause.PLACEMENT_LEFT: Cause.PLACEMENT,
    LossCause.MOVED_BY_TICK: Cause.PLACEMENT,
    LossCause.DEPENDENCY_UNNEEDED: Cause.DEPENDENCY,
}


def fate_of(loss: LossCause, *, keep: bool, is_ack: bool) -> DeletionAction:
    """Return the treatment of the copy. `is_ack`: the policy that applied it was of an ACK group."""
    if is_ack:
        return (_ACK_KEEP if keep else _ACK_DELETE)[loss]
    return (_KARMADA_KEEP if keep else _KARMADA_DELETE)[loss]


NOT_DELETED: Final = "not-deleted"
INCOMPLETE: Final = "the store could not be read completely"
"""The reason why absence from the store proves nothing."""


class LossInputs:
    """The schedule that copies are lost under, with its policies and broken files. Most rounds lose nothing."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.broken = FrozenReaches(schedule.fleet.frozen)

    @cached_property
    def _policies(self) -> tuple[PolicyIndex[PropagationPolicy], dict[PolicyRef, PropagationPolicy]]:
        propagation = self.schedule.fleet.propagation
        return PolicyIndex(propagation), {policy.ref: policy for policy in propagation}

    def speaking(self, template: Template, owner: PolicyRef | None) -> tuple[PropagationPolicy, ...]:
        """Return the policies that decide `keep`: the governing one, else the one that would claim it, and `owner`."""
        governs = self.schedule.policies.get(template.identity)
        if governs is not None:
            return (governs,)
        index, by_ref = self._policies
        policies = (winner(index.matches(template)), by_ref.get(owner) if owner is not None else None)
        return tuple(policy for policy in policies if policy is not None)


class LostCopy(Struct, frozen=True, kw_only=True):
    """One of our objects that is not wanted where it is. `hold`: who suspends writing about it, None: nobody."""

    cluster: str
    live: LiveObject
    owner: OwnershipRecord
    loss: LossCause
    fate: DeletionAction
    why: str
    hold: Hold | None = None


def lost_copies(
    identity: Identity, present: FleetCopies, members: Mapping[str, Member], inputs: LossInputs
) -> Iterator[LostCopy]:
    """Yield our unwanted copies of an object in clusters that were read, each with its fate, frozen ones included."""
    binding = inputs.schedule.bindings.get(identity)
    targets = {cluster for cluster, _ in binding.targets} if binding is not None else ()
    for cluster in present.copies:
        member, ownership = members[cluster], present.owners.get(cluster)
        if cluster in targets or not isinstance(member, Read) or ownership is None or ownership.owner is None:
            continue
        live, owner = member.objects[identity], ownership.owner
        # A template whose file is broken is not in the fleet; its copy still has the fields that a selector matches.
        as_seen = Template(gvk=live.gvk, identity=identity, content=Content(tree=live.body), source=NOWHERE)
        template = inputs.schedule.fleet.templates.get(identity, as_seen)
        loss, why = _loss(cluster, template, owner, inputs)
        if loss is LossCause.UNKNOWN:
            yield LostCopy(cluster=cluster, live=live, owner=owner, loss=loss, fate=DeletionAction.FROZEN, why=why)
            continue
        speaking = inputs.speaking(template, owner.policy)
        # The last applied value, unless the value declared now keeps more.
        fate = fate_of(loss, keep=owner.keep or any(policy.keep for policy in speaking), is_ack=owner.is_ack)
        hold = next(filter(None, (suspended_by(policy, cluster) for policy in speaking)), None)
        yield LostCopy(cluster=cluster, live=live, owner=owner, loss=loss, fate=fate, why=why, hold=hold)


def _loss(cluster: str, template: Template, owner: OwnershipRecord, inputs: LossInputs) -> tuple[LossCause, str]:
    fleet, identity = inputs.schedule.fleet, template.identity
    binding = inputs.schedule.bindings.get(identity)
    reach = inputs.broken.by(template)
    if reach is not None:
        return LossCause.UNKNOWN, reach.why
    staging = inputs.schedule.staging
    # Clusters in which it stays until their stage, though the store has it there no more.
    staying = staging.lingering.get(identity, frozenset()) if staging is not None else frozenset()
    is_gone = bool(staying) and binding is not None and staying.issuperset(binding.clusters)
    if binding is not None and not is_gone:
        if (identity, cluster) in inputs.schedule.ticked:
            return LossCause.MOVED_BY_TICK, "its replicas were moved away"
        reason = binding.cluster_reasons.get(cluster)
        return LossCause.PLACEMENT_LEFT, reason.text if reason else "the cluster is not in its placement"
    # What follows rests on absence from the store, which a partial reading cannot prove.
    if not fleet.is_complete:
        return LossCause.UNKNOWN, INCOMPLETE
    if owner.policy is None and identity[:2] == ("", "Namespace"):
        # It had no policy, and often no template: it followed what lives in it.
        loss = LossCause.POLICY_LEFT if identity in fleet.templates else LossCause.TEMPLATE_LEFT
        return loss, "nothing in it goes there any more"
    if identity not in fleet.templates or (is_gone and not owner.dependency):
        return LossCause.TEMPLATE_LEFT, "its template left the store"
    if owner.dependency:
        return LossCause.DEPENDENCY_UNNEEDED, "nothing that refers to it lives there any more"
    return LossCause.POLICY_LEFT, f"{owner.policy} no longer claims it, nor does any other policy"


def lose(
    schedule: Schedule, snapshot: FleetSnapshot, lost: LostCopy, hold: Hold | None
) -> tuple[Change | None, Problem | None]:
    """Return the change for a lost copy that is not frozen, or the problem in its way. `hold`: what the move awaits."""
    member, identity = snapshot.members[lost.cluster], lost.live.identity
    assert isinstance(member, Read), "of a member that was not read nothing is lost"
    template, row = schedule.fleet.templates.get(identity), snapshot.journal.row(member.name, identity)
    source = template.source if template is not None else row.source if row else NOWHERE
    if is_terminating(lost.live):
        return None, terminating(lost.live, member.name, source, is_wanted=False)
    # A Namespace that only follows what lives in it is never deleted by us, and nobody decided that it goes.
    follows = identity[:2] == ("", "Namespace") and lost.owner.policy is None
    release = lost.fate is DeletionAction.RELEASE or follows
    policy_lost = ""
    if lost.owner.policy is not None and lost.loss is LossCause.POLICY_LEFT:
        is_there = any(lost.owner.policy == one.ref for one in schedule.fleet.propagation)
        policy_lost = f"policy {lost.owner.policy.name} {'claims less' if is_there else 'removed'}"
    change = Change(
        action=Action.RELEASE if release else Action.DELETE,
        cluster=member.name,
        gvk=lost.live.gvk,
        identity=identity,
        cause=_CAUSE[lost.loss],
        before=lost.live.body,
        source=source,
        uid=lost.live.uid,
        resource_version=lost.live.resource_version,
        # Guards count what edits of the store cause. Moves by ticks have their own limit.
        guarded=lost.loss is not LossCause.MOVED_BY_TICK and not follows,
        policy_lost=policy_lost,
        reason=Reason(rule=lost.loss.name.lower().replace("_", "-"), text=lost.why),
    )
    suspended = lost.hold or schedule.hold(identity, member.name)
    if release:
        return replace(change, hold=suspended), None
    if not schedule.is_evicted(identity, lost.cluster):  # Then somebody asked for just that.
        moves = lost.loss in (LossCause.PLACEMENT_LEFT, LossCause.MOVED_BY_TICK)
        change = replace(change, confirm=why_confirmed(identity, lost.live.body, lost.cluster, moves=moves))
    managers = tuple(map(field_manager, fleet_names(snapshot.fleet.settings)))
    witness = missing_witness(lost.live, member, row.uid if row else None, managers)
    if not snapshot.journal.has_history:
        why = "nothing is deleted before one complete round has been recorded"
        return replace(change, hold=Hold(HeldBy.OTHERS, why)), None
    if witness:
        text = f"{identity} is no longer wanted but is not deleted: {witness}"
        return None, warning(source, "", NOT_DELETED, text, member.name)
    return replace(change, hold=_of_other_scope(schedule, member.name, identity) or hold or suspended), None


def stripped_copies(
    identity: Identity, present: FleetCopies, schedule: Schedule, snapshot: FleetSnapshot
) -> Iterator[Problem]:
    """Yield a warning for each unwanted copy of ours that lost a mark: it stays."""
    for cluster, ownership in present.owners.items() if schedule.fleet.is_complete else ():
        member, row = snapshot.members[cluster], snapshot.journal.row(cluster, identity)
        if ownership.standing is not ObjectOwner.NOBODYS or row is None or not isinstance(member, Read):
            continue
        live, is_wanted = member.objects[identity], schedule.is_bound(identity, cluster) or identity in schedule.frozen
        if row.uid == live.uid and not (is_wanted or is_terminating(live) or identity in member.under_way):
            text = f"{identity} is no longer wanted but is not deleted: it lost our mark; it stays, unmanaged"
            yield warning(row.source, "", NOT_DELETED, text, cluster)


def _of_other_scope(schedule: Schedule, cluster: str, identity: Identity) -> Hold | None:
    """Return the hold of an object whose kind changes its scope: no API server takes such an update of a definition."""
    definition = schedule.definition_of(identity[:2])
    if definition is None or cluster not in schedule.bindings[definition].clusters:
        return None
    is_namespaced = dig(schedule.fleet.templates[definition].body, "spec", "scope") == "Namespaced"
    if is_namespaced == bool(identity.namespace):
        return None
    why = f"{definition} there has to be deleted first, for another scope; what takes its place cannot be made before"
    return Hold(HeldBy.OTHERS, why)
