"""The leader, for a person who asks: nothing is written, and no clock is compared. Source: ADR 20."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from reconciler.adapters.clock import within
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited
from reconciler.daemon import timing
from reconciler.daemon.leadership.handover import HandoverFile
from reconciler.daemon.observing.members import told_fault
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.errors import MemberClusterError, ObjectNotFound
from reconciler.model.refs import GVK
from reconciler.stages.leadership import lease_name, read_lease

_LEASE: Final = GVK("coordination.k8s.io", "v1", "Lease")


class Leading(Struct, frozen=True, kw_only=True):
    """The Lease's content and the handover. `holder`: the leader; empty: nobody, or unknown.

    `renewed`: the last renewal of the Lease, by its holder's clock. `has_handover`: whether there is a handover.
    `error`: the error of reading any of it.
    """

    cluster: str
    holder: str = ""
    term: int = 0
    renewed: str = ""
    has_handover: bool = False
    error: str = ""


async def who_leads(member: MemberCluster, fleet: str) -> Leading:
    """Return the content of the Lease and of the handover."""
    found = await awaited(within(_look(member, fleet), timing.PROMPT_S))
    if found.value is not None:
        return found.value
    if isinstance(found.fault, MemberClusterError):
        return Leading(cluster=member.name, error=found.fault.message)
    assert found.fault is not None, "what gives nothing has failed"
    is_silent = isinstance(found.fault, TimeoutError)
    why = "no answer in time" if is_silent else told_fault(member.name, found.fault)
    return Leading(cluster=member.name, error=why)


async def _look(member: MemberCluster, fleet: str) -> Leading:
    left = await HandoverFile(member, fleet).read()
    try:
        lease = read_lease((await member.get(_LEASE, NAMESPACE, lease_name(fleet))).body)
    except ObjectNotFound:
        return Leading(cluster=member.name, has_handover=left is not None)
    return Leading(
        cluster=member.name,
        holder=lease.holder,
        term=lease.transitions,
        renewed=lease.renewed,
        has_handover=left is not None,
    )
