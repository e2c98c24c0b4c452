"""Slow clusters are read beside the rounds: no round waits for its slowest cluster. Source: design#promise-7; ADR 14.

What is not answered yet is unknown to the round that asked; the answer is an event for the next one. Rounds over
everything wait, as they have nothing to do without the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Member, NotRead, Read
from reconciler.api.refs import GVK, Identity
from reconciler.clock import within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable, ReadOne, ReadRequest, read_members, why_unread
from reconciler.controller.inbox import ClusterChanged, Inbox
from reconciler.controller.tasks import end_tasks, start
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster


class _LateReading(Struct, kw_only=True):
    """A reading in progress of `kinds`. `again`: objects wanted once more; `is_to_list`: other lists are wanted."""

    member: MemberCluster
    task: asyncio.Task[Member]
    identities: frozenset[Identity]
    kinds: frozenset[GVK]
    again: set[Identity] = field(default_factory=set)
    is_to_list: bool = False

    def want(self, wanted: ReadRequest) -> None:
        """Note objects to read once this has ended. Running lists show later changes, too."""
        if not wanted.kinds:
            self.again.update(_identities(wanted))
        self.is_to_list = self.is_to_list or not wanted.kinds <= self.kinds


class LateReadings:
    """At most one reading beside the rounds for each cluster."""

    def __init__(self, inbox: Inbox) -> None:
        """Nothing is late. `inbox`: is sent what a late answer is about."""
        self._inbox = inbox
        self._late: dict[str, _LateReading] = {}

    async def read(
        self, members: Reachable, interest: Mapping[str, ReadRequest], read_one: ReadOne, *, connected: int
    ) -> dict[str, Member]:
        """Return each cluster as far as it has been read; pending objects are `under_way`. As `read_members`.

        `connected`: number of all clusters, asked or not.
        """
        read: dict[str, Member] = {}
        begun: dict[str, tuple[asyncio.Task[Member], ReadRequest]] = {}
        for name, member in sorted(members.items()):
            wanted = interest.get(name, ReadRequest())
            if isinstance(member, str):
                read[name] = NotRead(name=name, why=member)
                continue
            if name in self._late and self._late[name].member is not member:
                # It is reached in another way now.
                self._late.pop(name).task.cancel()
            known = self._answered(name, wanted)
            if known is not None:
                read[name] = known
                wanted = _without(wanted, known)
            if isinstance(known, NotRead) or (known is not None and not (wanted.wanted or wanted.kinds)):
                continue
            if name in self._late:
                self._late[name].want(wanted)
                read[name] = await _unknown(member, wanted, known)
                continue
            begun[name] = start(read_one(member, wanted), f"reading {name}"), wanted
        tasks, began_s = [task for task, _ in begun.values()], asyncio.get_running_loop().time()
        pending = set(tasks)
        # All are waited for, unless some take much longer than half of them. If few are read, all may be slow ones.
        while len(tasks) > connected // 2 and len(pending) > len(tasks) // 2:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        if pending:
            await asyncio.wait(pending, timeout=max(timing.GRACE_S, asyncio.get_running_loop().time() - began_s))
        for name, (task, wanted) in begun.items():
            member, known = members[name], read.get(name)
            assert not isinstance(member, str), "a reading was begun"
            if task.done():
                read[name] = _joined(known, task.result())
            else:
                self._late[name] = _LateReading(
                    member=member, task=task, identities=_identities(wanted), kinds=wanted.kinds
                )
                task.add_done_callback(partial(self._read_ended, name))
                read[name] = await _unknown(member, wanted, known)
        return dict(sorted(read.items()))

    def _answered(self, name: str, wanted: ReadRequest) -> Member | None:
        """Return the result of a reading from an earlier round, once; None: none, or still running."""
        late = self._late.get(name)
        if late is None or not late.task.done():
            return None
        del self._late[name]
        if late.task.cancelled() or not wanted.kinds <= late.kinds:
            return None
        if not wanted.kinds and not late.identities & _identities(wanted):
            return None
        # What happened to these meanwhile may have come too late for that answer.
        self._inbox.changed(late.again & late.identities, name)
        return late.task.result() if wanted.kinds else _of(late.task.result(), _identities(wanted))

    def _read_ended(self, name: str, _: asyncio.Task[Member]) -> None:
        late = self._late.get(name)
        if late is None or late.task.cancelled():
            return
        if late.kinds or late.is_to_list:
            self._inbox.send(ClusterChanged(name))
        else:
            self._inbox.changed(late.identities | late.again, name)

    async def read_all(
        self, members: Reachable, interest: Mapping[str, ReadRequest], read_one: ReadOne
    ) -> dict[str, Member]:
        """Return every cluster as a whole, as `read_members`; cancel running readings."""
        await self.close()
        return await read_members(members, interest, read_one)

    async def close(self) -> None:
        """Cancel running readings; nobody waits for them."""
        late, self._late = self._late, {}
        await end_tasks(each.task for each in late.values())


def _identities(wanted: ReadRequest) -> frozenset[Identity]:
    return frozenset(ref.identity for ref in wanted.wanted)


def _of(member: Member, identities: frozenset[Identity]) -> Member:
    """Return only the objects of a round: an object that is not compared must not count as in order."""
    if isinstance(member, NotRead) or member.objects.keys() <= identities:
        return member
    return replace(
        member, objects={identity: live for identity, live in member.objects.items() if identity in identities}
    )


def _without(wanted: ReadRequest, known: Member) -> ReadRequest:
    if isinstance(known, NotRead):
        return wanted
    answered = known.objects.keys() | known.absent | known.unread.keys()
    left = frozenset(ref for ref in wanted.wanted if ref.identity not in answered)
    return replace(wanted, wanted=left, kinds=frozenset())


async def _unknown(member: MemberCluster, wanted: ReadRequest, known: Member | None) -> Member:
    identities = _identities(wanted)
    if isinstance(known, Read):
        return replace(known, under_way=identities)
    answer = await try_await(within(member.discover(), timing.MOMENT_S))
    if answer.value is not None:
        return Read(name=member.name, served=answer.value.served(), under_way=identities)
    if isinstance(answer.fault, MemberClusterError | TimeoutError):
        return NotRead(name=member.name, why="it has not answered yet")
    return NotRead(name=member.name, why=why_unread(member.name, answer.fault))


def _joined(known: Member | None, more: Member) -> Member:
    if not isinstance(known, Read) or not isinstance(more, Read):
        return more
    return replace(
        more,
        objects={**known.objects, **more.objects},
        absent=known.absent | more.absent,
        kinds=known.kinds | more.kinds,
        unread={**known.unread, **more.unread},
        autoscaled=known.autoscaled | more.autoscaled,
        listed=known.listed | more.listed,
        unlisted=tuple(sorted({*known.unlisted, *more.unlisted})),
        is_whole=known.is_whole or more.is_whole,
        last_healths={**known.last_healths, **more.last_healths},
    )
