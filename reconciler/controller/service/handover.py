"""The handover that a leader leaves for the next one, beside the Lease; and both, as a person asks for them.

Source: ADR 20.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.clock import within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.reading.members import why_unread
from reconciler.controller.round.hold import put_own
from reconciler.controller.round.mark import NAMESPACE
from reconciler.controller.service.elector import LEASE
from reconciler.errors import AlreadyExists, ObjectNotFound, WriteConflict
from reconciler.kube.client import MemberCluster
from reconciler.lease import Handover, handover_body, handover_name, lease_name, read_handover, read_lease
from reconciler.ownership import field_manager

_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class HandoverFile:
    """One ConfigMap. What this process wrote or read last is what its next write has to find."""

    def __init__(self, member: MemberCluster, fleet: str) -> None:
        self._member = member
        self._fleet = fleet
        self._live: LiveObject | None = None
        self._written: Handover | None = None

    async def read(self) -> Handover | None:
        """Return the last leader's handover; None: there was none.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            self._live = await self._member.get(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        except ObjectNotFound:
            self._live = None
            return None
        return read_handover(self._live.body)

    async def is_spoiled(self) -> bool:
        """Return whether others changed or deleted the last written handover; it is written again then.

        Raises:
            MemberClusterError: it cannot be read.
        """
        try:
            live = await self._member.get(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        except ObjectNotFound:
            self._written = None
            return True
        if self._live is None or live.resource_version != self._live.resource_version:
            self._written = None
        return self._written is None

    async def write(self, left: Handover, number: Callable[[], int]) -> None:
        """Write the handover, unless an equal one is there. `number`: counts the writes.

        Raises:
            WriteConflict, AlreadyExists: somebody else wrote it since it was read.
            MemberClusterError: it cannot be written.
            HandoverTooLarge: it does not fit.
        """
        if left == self._written:
            return
        numbered = replace(left, number=number())
        before = self._live
        try:
            await self._write(numbered)
        except (AlreadyExists, ObjectNotFound, WriteConflict):
            # A person deleted it or restored an old one, or it is what we wrote when the answer was lost.
            found = await self.read()
            is_same = found is None or (found.journal, found.term) == (left.journal, left.term)
            if found is not None and not is_same and found.term >= left.term:
                self._live = before  # Whoever leads later is not written over at the next attempt either.
                raise
            await self._write(numbered)
        self._written = left

    async def _write(self, left: Handover) -> None:
        name, manager = handover_name(self._fleet), field_manager(self._fleet)
        body = handover_body(self._fleet, NAMESPACE, left)
        self._live = await put_own(self._member, _CONFIG_MAP, name, body, self._live, manager)


class LeaderStatus(Struct, frozen=True, kw_only=True):
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


async def who_leads(member: MemberCluster, fleet: str) -> LeaderStatus:
    """Return the content of the Lease and of the handover."""
    found = await try_await(within(_leader_status(member, fleet), timing.PROMPT_S))
    if found.value is not None:
        return found.value
    return LeaderStatus(cluster=member.name, error=why_unread(member.name, found.fault, silence="no answer in time"))


async def _leader_status(member: MemberCluster, fleet: str) -> LeaderStatus:
    left = await HandoverFile(member, fleet).read()
    try:
        lease = read_lease((await member.get(LEASE, NAMESPACE, lease_name(fleet))).body)
    except ObjectNotFound:
        return LeaderStatus(cluster=member.name, has_handover=left is not None)
    return LeaderStatus(
        cluster=member.name,
        holder=lease.holder,
        term=lease.transitions,
        renewed=lease.renewed,
        has_handover=left is not None,
    )
