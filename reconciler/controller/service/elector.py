"""Holds the Lease of a fleet, or waits for it. Source: ADR 20.

The elector of the `kubernetes` package is not used: it blocks a thread, and compares clocks of two machines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.clock import Clock, within
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import why_unread
from reconciler.controller.round.owner_record import NAMESPACE
from reconciler.controller.round.ownership_lock import put_own
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import AlreadyExists, MemberClusterError, ObjectNotFound, WriteConflict
from reconciler.kube.client import MemberCluster
from reconciler.lease import (
    Leader,
    Lease,
    ObservedLease,
    given_back,
    handover_name,
    lease_body,
    lease_name,
    raised,
    read_handover,
    read_lease,
    renewed,
    sighted,
    taken_by,
    wait_for_lease_s,
)
from reconciler.ownership import field_manager
from reconciler.report.status.remedies import STANDBY

LEASE: Final = GVK("coordination.k8s.io", "v1", "Lease")
_RENEWALS: Final = 5
"""So many times in its duration a Lease is renewed, or looked at by who waits for it."""
_ANSWERS: Final = 3
"""In such a part of its duration a request about it has to be answered."""
_NOT_RENEWED: Final = "the Lease was not renewed in time"


class Elector:
    """One Lease in one cluster, for one process. All requests of it go through a connection of their own."""

    def __init__(
        self,
        member: MemberCluster,
        clock: Clock,
        since_boot_s: Callable[[], float],
        *,
        fleet: str,
        holder: str,
        duration_s: int,
    ) -> None:
        """Ask nothing yet. `since_boot_s`: goes on while the machine sleeps. `holder`: names this process alone."""
        self._member, self._clock, self._since_boot_s = member, clock, since_boot_s
        self._fleet, self._own, self.duration_s = fleet, holder, duration_s
        self._observed: ObservedLease | None = None
        self._live: LiveObject | None = None
        self._leader: Leader | None = None
        self._writes_from_s = 0.0
        """Not before: who made the Lease waits for who held one that was deleted."""
        self._held = Lease()
        """As it was written last; what is seen may be gone by now."""
        self._latest = 0
        """The latest term that was seen in it."""
        self._one_by_one = asyncio.Lock()
        self._transitions = Transitions()
        self.fault = ""
        """The error for which the Lease cannot be read or written now; empty: it can be."""

    @property
    def term(self) -> int | None:
        """The term in which this process leads; None: it does not."""
        return self._leader.term if self._leader is not None else None

    @property
    def holder(self) -> str:
        """Return the last known holder of the Lease; empty: nobody."""
        return self._observed.lease.holder if self._observed is not None else ""

    def writing_left_s(self) -> float:
        """So long a write may take that begins now; 0: none may."""
        return self._leader.writing_left_s(self._since_boot_s()) if self._leader is not None else 0.0

    async def campaign(self) -> None:
        """Wait until this process leads. A cluster of the Lease that is away is asked again and again."""
        while self._leader is None:
            tried = await try_await(within(self._try(), self._answer_s))
            wait_s = tried.value if tried.value is not None else self._every_s
            self._report(tried.fault, "the Lease cannot be read; nobody leads from here until it can")
            if self._leader is None:
                await self._clock.sleep(min(max(wait_s, 0.1), self._every_s))

    async def may_write(self) -> None:
        """Wait until this process may write, or leads no more: who made the Lease waits for who held a deleted one."""
        while (leader := self._leader) is not None and (left_s := leader.writes_from_s - self._since_boot_s()) > 0:
            await self._clock.sleep(min(left_s, self._every_s))

    async def keep(self) -> str:
        """Renew the Lease until it is lost; why it was. Writing has ended by itself before that."""
        while True:
            renew = self._rewrite(lambda lease: renewed(lease, self.duration_s, self._clock.now()))
            tried = await try_await(within(renew, self._answer_s))
            if tried.value:
                self._leader = None
                return tried.value
            self._report(tried.fault, "the Lease cannot be renewed; writing ends before it runs out")
            await self._clock.sleep(timing.GRACE_S if tried.fault is not None else self._every_s)

    async def raise_term(self, over: int) -> bool:
        """Lead in a term above one that a mark has; whether this process leads in such a one.

        Raises MemberClusterError, TimeoutError: the Lease cannot be written now.
        """
        if self._leader is None or self._leader.term > over:
            return self._leader is not None
        why = await within(self._rewrite(lambda lease: raised(lease, over, self._clock.now())), self._answer_s)
        if why:
            self._leader = None
        return not why

    async def release(self) -> None:
        """Let the next one lead at once; where that cannot be said, it waits until the Lease has run out.

        Only after `campaign` and `keep` have ended. What they were writing may be written though nobody heard of it.
        """
        leader, self._leader = self._leader, None
        if leader is None or leader.is_run_out(self._since_boot_s()):
            return
        with contextlib.suppress(MemberClusterError, TimeoutError):
            await within(self._release(), self._answer_s)

    async def _release(self) -> None:
        try:
            await self._send(given_back(self._held, self._clock.now()))
        except WriteConflict:
            await self._read_lease()
            if self._live is not None and self.holder == self._own:
                await self._send(given_back(self._held_there(), self._clock.now()))

    @property
    def _every_s(self) -> float:
        return self.duration_s / _RENEWALS

    @property
    def _answer_s(self) -> float:
        return self.duration_s / _ANSWERS

    async def _try(self) -> float:
        """Look at the Lease, and take it where it may be taken; how long to wait where not."""
        await self._read_lease()
        assert self._observed is not None, "it was looked at"
        # A Lease that somebody made again is not ours, whatever it says.
        own = self._own if self._observed.lease.transitions >= self._latest else ""
        wait_s = wait_for_lease_s(self._observed, own, self.duration_s, self._since_boot_s())
        if wait_s > 0:
            return wait_s
        begun_s = self._since_boot_s()
        lease = taken_by(self._own, self._observed.lease, self.duration_s, self._clock.now())
        try:
            await self._write(lease, begun_s)
        except (AlreadyExists, WriteConflict, ObjectNotFound):
            return 0.0  # Somebody was faster; what they wrote is looked at next.
        return 0.0

    async def _rewrite(self, changed: Callable[[Lease], Lease]) -> str:
        """Write the Lease that is held; why it is lost, empty: it is not."""
        async with self._one_by_one:
            while True:
                leader, begun_s = self._leader, self._since_boot_s()
                if leader is None or leader.is_run_out(begun_s):
                    return _NOT_RENEWED
                try:
                    await self._write(changed(self._held), begun_s)
                except (AlreadyExists, ObjectNotFound, WriteConflict):
                    # A person wrote its labels or deleted it; or we wrote it, and the answer was lost; or it is taken.
                    await self._read_lease()
                    if self._live is not None:
                        if self.holder != self._own:
                            return f"{self.holder or 'nobody'} holds the Lease"
                        self._held = self._held_there()
                else:
                    return ""

    def _held_there(self) -> Lease:
        """Return the live Lease that we hold; a person may have written another term into it."""
        assert self._observed is not None, "it was looked at"
        there = self._observed.lease
        return replace(there, transitions=max(there.transitions, self._held.transitions))

    async def _read_lease(self) -> None:
        self._live = await self._member.find(LEASE, NAMESPACE, lease_name(self._fleet))
        lease = read_lease(self._live.body) if self._live is not None else Lease()
        version = self._live.resource_version if self._live is not None else ""
        self._observed = sighted(self._observed, lease, version, self._since_boot_s())
        self._latest = max(self._latest, lease.transitions)

    async def _write(self, lease: Lease, begun_s: float) -> None:
        """Write the Lease as ours, and lead from the moment before it was sent."""
        if self._leader is None and self._live is None:
            self._writes_from_s = begun_s + self.duration_s  # Also where the answer to this is lost.
        self._live = live = await self._send(lease)
        self._held = lease
        self._observed = ObservedLease(lease=lease, resource_version=live.resource_version, since_s=begun_s)
        self._leader = Leader(
            term=lease.transitions, renewed_s=begun_s, duration_s=self.duration_s, writes_from_s=self._writes_from_s
        )

    async def _send(self, lease: Lease) -> LiveObject:
        manager = field_manager(self._fleet)
        body, name = lease_body(self._fleet, NAMESPACE, lease), lease_name(self._fleet)
        return await put_own(self._member, LEASE, name, body, self._live, manager)

    def _report(self, fault: Exception | None, text: str) -> None:
        if fault is None:
            self.fault = ""
            self._transitions.leave("lease", "the Lease can be read and written again", event="LeaseReachable")
            return
        is_expected = isinstance(fault, (MemberClusterError, TimeoutError))
        why = str(fault) or "no answer in time"
        self.fault = f"the Lease in {self._member.name}: {why}"
        extra = {"event": "LeaseUnreachable", "cluster": self._member.name, "todo": STANDBY,
                 **({} if is_expected else fault_fields())}  # fmt: skip
        self._transitions.enter("lease", why, logging.WARNING, text, **extra, error=why)


class LeaderStatus(Struct, frozen=True, kw_only=True):
    """The Lease's content. `holder`: empty: nobody, or unknown. `renewed`: by its clock. `error`: of reading it."""

    cluster: str
    holder: str = ""
    term: int = 0
    renewed: str = ""
    has_handover: bool = False
    error: str = ""


async def lease_and_handover(member: MemberCluster, fleet: str) -> LeaderStatus:
    """Return the content of the Lease and of the handover."""

    async def status() -> LeaderStatus:
        left = await member.find(GVK("", "v1", "ConfigMap"), NAMESPACE, handover_name(fleet))
        has_left = left is not None and read_handover(left.body) is not None
        live = await member.find(LEASE, NAMESPACE, lease_name(fleet))
        lease = read_lease(live.body) if live is not None else Lease()
        known = LeaderStatus(cluster=member.name, holder=lease.holder, has_handover=has_left)
        return replace(known, term=lease.transitions, renewed=lease.renewed)

    read = await try_await(within(status(), timing.PROMPT_S))
    if read.value is not None:
        return read.value
    return LeaderStatus(cluster=member.name, error=why_unread(member.name, read.fault, silence="no answer in time"))
