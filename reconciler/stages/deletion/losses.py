"""Which of our copies are no longer wanted in a cluster, and why.

Source: design#absence; design#frozen; design#promise-1; design#promise-2; design#promise-3: nothing is concluded from a
failed or partial reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet, Template
from reconciler.model.observation import LiveObject, Member, Read
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import NOWHERE
from reconciler.model.refs import Identity
from reconciler.stages.claims import Claimants, Frozen
from reconciler.stages.comparison import Seen
from reconciler.stages.deletion.deletion import Fate, Loss, fate_of, keep_in_force
from reconciler.stages.ownership import Owner
from reconciler.stages.placement import suspended_by

INCOMPLETE: Final = "the store could not be read completely"
"""The reason why absence from the store proves nothing."""


class Decided(Struct, frozen=True, kw_only=True):
    """The part of the schedule that losses need.

    `policies`: the policy that governs each template, own or its owner's. `claimants`: those of templates without a
    policy. `broken`: unreadable documents and their reach. `ticked`: (identity, cluster) that a constraint took away.
    """

    fleet: Fleet
    bindings: Mapping[Identity, Binding]
    policies: Mapping[Identity, PropagationPolicy]
    claimants: Claimants
    broken: Frozen
    ticked: Collection[tuple[Identity, str]] = ()


class LostCopy(Struct, frozen=True, kw_only=True):
    """One of our objects that is not wanted where it is. `hold`: who suspends writing about it, None: nobody."""

    cluster: str
    live: LiveObject
    owner: Owner
    loss: Loss
    fate: Fate
    why: str
    hold: str | None = None

    @property
    def is_frozen(self) -> bool:
        """Return whether a broken file may want it: it is left as it is."""
        return self.fate is Fate.FROZEN


def lost_copies(identity: Identity, seen: Seen, members: Mapping[str, Member], wanted: Decided) -> Iterator[LostCopy]:
    """Our copies of an object that nothing wants where they are, each with its fate; frozen ones included.

    Of a member that was not read nothing is lost.
    """
    binding = wanted.bindings.get(identity)
    targets = {cluster for cluster, _ in binding.targets} if binding is not None else ()
    for cluster in seen.copies:
        member, ownership = members[cluster], seen.owners.get(cluster)
        if cluster in targets or not isinstance(member, Read) or ownership is None or ownership.owner is None:
            continue
        yield _lost(cluster, member.objects[identity], ownership.owner, binding, wanted)


def _lost(cluster: str, live: LiveObject, owner: Owner, binding: Binding | None, wanted: Decided) -> LostCopy:
    # A template whose own file is broken is not in the fleet; its copy still has the fields that a selector matches.
    seen = Template(gvk=live.gvk, identity=live.identity, body=live.body, source=NOWHERE, digest="")
    template = wanted.fleet.templates.get(live.identity, seen)
    loss, why = _loss(cluster, template, owner, binding, wanted)
    if loss is Loss.UNKNOWN:
        return LostCopy(cluster=cluster, live=live, owner=owner, loss=loss, fate=Fate.FROZEN, why=why)
    governs = wanted.policies.get(live.identity)
    speaking = (governs,) if governs is not None else wanted.claimants.of(template, owner.policy)
    keep = keep_in_force(applied=owner.keep, declared=any(policy.keep for policy in speaking))
    fate = fate_of(loss, keep=keep, is_ack=owner.is_ack)
    hold = next(filter(None, (suspended_by(policy, cluster) for policy in speaking)), None)
    return LostCopy(cluster=cluster, live=live, owner=owner, loss=loss, fate=fate, why=why, hold=hold)


def _loss(cluster: str, seen: Template, owner: Owner, binding: Binding | None, wanted: Decided) -> tuple[Loss, str]:
    fleet, identity = wanted.fleet, seen.identity
    reach = wanted.broken.by(seen)
    if reach is not None:
        return Loss.UNKNOWN, reach.why
    if binding is not None:
        if (identity, cluster) in wanted.ticked:
            return Loss.MOVED_BY_TICK, "its replicas were moved away"
        reason = binding.cluster_reasons.get(cluster)
        return Loss.PLACEMENT_LEFT, reason.text if reason else "the cluster is not in its placement"
    # What follows rests on absence from the store, which a partial reading cannot prove.
    if not fleet.is_complete:
        return Loss.UNKNOWN, INCOMPLETE
    if owner.policy is None and identity[:2] == ("", "Namespace"):
        # It had no policy, and often no template: it followed what lives in it.
        loss = Loss.POLICY_LEFT if identity in fleet.templates else Loss.TEMPLATE_LEFT
        return loss, "nothing in it goes there any more"
    if identity not in fleet.templates:
        return Loss.TEMPLATE_LEFT, "its template left the store"
    if owner.dependency:
        return Loss.DEPENDENCY_UNNEEDED, "nothing that refers to it lives there any more"
    return Loss.POLICY_LEFT, f"{owner.policy} no longer claims it, nor does any other policy"
