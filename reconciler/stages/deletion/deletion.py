"""The treatment of a member's copy that the store no longer wants there, by cause.

Source: design#template-leaves; design#policy-leaves; design#cluster-leaves; design#moved-by-a-tick;
design#dependency-unneeded; design#frozen. design#keep: preserveResourcesOnDeletion; the last applied value is active,
and a new value in the same commit counts only if it keeps more.
"""

from __future__ import annotations

from enum import StrEnum

from reconciler.model.plan import Cause


class Loss(StrEnum):
    """The reason why a copy is no longer desired."""

    TEMPLATE_LEFT = "the template left the store"
    POLICY_LEFT = "its policy left or no longer selects it, and nothing else claims it"
    PLACEMENT_LEFT = "the cluster left the placement"
    MOVED_BY_TICK = "its replicas were moved away by a tick"
    DEPENDENCY_UNNEEDED = "nothing that refers to it lives there any more"
    UNKNOWN = "its file is broken, or its cluster is unreachable or removed from the store"


class Fate(StrEnum):
    """Its treatment. A move is: create elsewhere, wait until that is healthy, then delete."""

    DELETE = "delete"
    RELEASE = "release"
    MOVE = "move"
    FROZEN = "frozen"


_ACK_KEEP = {
    Loss.TEMPLATE_LEFT: Fate.RELEASE,
    Loss.POLICY_LEFT: Fate.RELEASE,
    Loss.PLACEMENT_LEFT: Fate.MOVE,
    Loss.MOVED_BY_TICK: Fate.MOVE,
    Loss.DEPENDENCY_UNNEEDED: Fate.RELEASE,
    Loss.UNKNOWN: Fate.FROZEN,
}
_ACK_DELETE = _ACK_KEEP | {
    Loss.TEMPLATE_LEFT: Fate.DELETE,
    Loss.POLICY_LEFT: Fate.DELETE,
    Loss.DEPENDENCY_UNNEEDED: Fate.DELETE,
}
_KARMADA_KEEP = _ACK_KEEP | {Loss.PLACEMENT_LEFT: Fate.RELEASE}
# Karmada never deletes when a policy leaves: its bindings outlive their policy.
_KARMADA_DELETE = _ACK_DELETE | {Loss.POLICY_LEFT: Fate.RELEASE}

_CAUSE = {
    Loss.TEMPLATE_LEFT: Cause.REMOVED,
    Loss.POLICY_LEFT: Cause.POLICY,
    Loss.PLACEMENT_LEFT: Cause.PLACEMENT,
    Loss.MOVED_BY_TICK: Cause.PLACEMENT,
    Loss.DEPENDENCY_UNNEEDED: Cause.DEPENDENCY,
}


def fate_of(loss: Loss, *, keep: bool, is_ack: bool) -> Fate:
    """Return the treatment of the copy. `is_ack`: the policy that applied it was of an ACK group."""
    if is_ack:
        return (_ACK_KEEP if keep else _ACK_DELETE)[loss]
    return (_KARMADA_KEEP if keep else _KARMADA_DELETE)[loss]


def cause_of(loss: Loss) -> Cause:
    """Return the plan's cause for the loss. Frozen copies are in no plan."""
    assert loss is not Loss.UNKNOWN, "a frozen copy is no change"
    return _CAUSE[loss]


def keep_in_force(*, applied: bool, declared: bool | None) -> bool:
    """The last applied value, unless the value declared now keeps more. None: nothing is declared any more."""
    return applied or bool(declared)


def is_edit(loss: Loss) -> bool:
    """Return whether an edit of the store caused it, so that the guards count it.

    Moves by ticks have their own limit.
    """
    return loss is not Loss.MOVED_BY_TICK
