"""Reads and writes what one leader leaves for the next, beside the Lease.

The takeover of a new leader before it acts: it learns the last leader's state, and raises the term above every mark.

Source: ADR 20. The state in the marks of the clusters is read there; the rest is in the last leader's handover. A
journal that led last itself has all of it, and is trusted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement
from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, Event, EventKind
from reconciler.api.refs import GVK
from reconciler.clock import Clock
from reconciler.controller.once.journal_from_marks import placements_of, rows_of_all
from reconciler.controller.reading.read_clusters import answering
from reconciler.controller.round.hold import NAMESPACE, OwnershipLock, ensure_namespace
from reconciler.controller.round.mark import Mark, is_own
from reconciler.controller.service.elector import Elector
from reconciler.errors import AlreadyExists, ObjectNotFound, WriteConflict
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import Handover, handover_body, handover_name, read_handover
from reconciler.ownership import field_manager

_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class HandoverFile:
    """One ConfigMap. What this process wrote or read last is what its next write has to find."""

    def __init__(self, member: MemberCluster, fleet: str) -> None:
        """Nothing is asked yet."""
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
        if self._live is None:
            await ensure_namespace(self._member, manager)
            self._live = await self._member.create(_CONFIG_MAP, NAMESPACE, name, body, manager=manager)
        else:
            self._live = await self._member.apply(
                *(_CONFIG_MAP, NAMESPACE, name, body),
                manager=manager, force=True, uid=self._live.uid, resource_version=self._live.resource_version,
            )  # fmt: skip


log = logging.getLogger("reconciler")


class Taken(Struct, frozen=True, kw_only=True):
    """The state after a takeover. `leaders`: journals of all former leaders, this one first.

    `revision`: of the store, at the beginning of this term. `unread`: clusters with unread marks; nothing is done there
    before they are read.
    """

    leaders: tuple[str, ...]
    revision: str
    unread: frozenset[str]


async def take_over(
    fleet: Fleet, journal: Journal, members: MemberClusters, elector: Elector, left_there: HandoverFile, clock: Clock
) -> Taken | None:
    """Learn the last leader's state; None: another process leads by now.

    Raises:
        MemberClusterError: what was left, or the Lease, cannot be read or written.
        JournalError: it cannot be recorded.
    """
    left = await left_there.read()
    reachable, uids = await answering(fleet, members, journal.cluster_uids())
    met = {name: member for name, member in reachable.items() if isinstance(member, MemberCluster)}
    holder = OwnershipLock(journal, clock)
    marks = await holder.marks(met.values(), fleet.settings.name)
    if not await _leads_above(elector, marks, left):
        return None
    if _is_known(journal, marks, left):
        unread = frozenset(left.unread if left is not None else ()) & fleet.clusters.keys()
    else:
        unread = await _learn(fleet, journal, (met, uids), left, holder, clock)
    leaders = dict.fromkeys((journal.uuid, *(left.leaders if left is not None else ()), *_led(marks)))
    taken = Taken(leaders=tuple(leaders), revision=fleet.revision, unread=unread)
    await left_there.write(left_by(journal, elector, taken), journal.count_left)
    return taken


def left_by(journal: Journal, elector: Elector, taken: Taken) -> Handover:
    """Return the present handover."""
    return Handover(
        journal=journal.uuid,
        term=elector.term or 0,
        revision=journal.revision_in_force or taken.revision,
        leaders=taken.leaders,
        unread=tuple(sorted(taken.unread)),
        tables=journal.handover(),
        placements=journal.previous_placements(),
    )


async def read_unread(
    fleet: Fleet, journal: Journal, members: MemberClusters, unread: Iterable[str], clock: Clock
) -> frozenset[str]:
    """Read the marks of clusters that could not be read when this process began to lead; those that still cannot."""
    waiting = frozenset(unread)
    reachable, uids = await answering(fleet, members, journal.cluster_uids(), waiting)
    met = {name: member for name, member in reachable.items() if isinstance(member, MemberCluster) and name in waiting}
    if not met:
        return waiting
    await OwnershipLock(journal, clock).read_back(met.values(), fleet.settings.name)
    rows, failed = await _rows(met, fleet)
    with journal.transaction(durable=True):
        _record(journal, fleet, rows, uids)
    return waiting - met.keys() | failed


async def _leads_above(elector: Elector, marks: Mapping[str, Mark], left: Handover | None) -> bool:
    """Lead in a term that no mark has: a Lease that somebody deleted begins to count anew."""
    terms = [mark.term for mark in marks.values() if mark.term is not None]
    highest = max([*terms, left.term if left is not None else 0], default=0)
    if elector.term is None or elector.term > highest:
        return elector.term is not None
    return await elector.raise_term(highest)


def _is_known(journal: Journal, marks: Mapping[str, Mark], left: Handover | None) -> bool:
    """Return whether this journal led last, or nobody ever did under a Lease. One from a backup is outdated."""
    if any(mark.journal == journal.uuid and not is_own(mark, journal.holds(name)) for name, mark in marks.items()):
        return False
    if left is not None:
        return left.journal == journal.uuid and left.number <= journal.left
    return not any(mark.term is not None and mark.journal != journal.uuid for mark in marks.values())


def _led(marks: Mapping[str, Mark]) -> list[str]:
    """Journals that wrote marks under a Lease."""
    return sorted({mark.journal for mark in marks.values() if mark.term is not None})


async def _learn(
    fleet: Fleet,
    journal: Journal,
    met: tuple[Mapping[str, MemberCluster], Mapping[str, str]],
    left: Handover | None,
    holder: OwnershipLock,
    clock: Clock,
) -> frozenset[str]:
    """Fill the journal from the marks and the handover; return the clusters that could not be read."""
    members, uids = met
    rows, failed = await _rows(members, fleet)
    journal.reset()
    if left is not None:
        journal.take_handover(left.tables)
    await holder.read_back(members.values(), fleet.settings.name)
    with journal.transaction(durable=True):
        _record(journal, fleet, rows, uids)
        if left is not None:
            # What the leader decided last is believed, also of clusters that nobody can ask now.
            journal.patch_bindings(fleet.revision, dict(left.placements))
        count = sum(map(len, rows.values()))
        data = {"revision": fleet.revision, "who": "this process, which leads now", "objects": count}
        taken = Event(round=0, time=clock.now(), kind=EventKind.TAKEN_OVER, subject="fleet", data=data)
        journal.record_events([taken])
    return frozenset(fleet.clusters.keys() - members.keys()) | failed


async def _rows(
    members: Mapping[str, MemberCluster], fleet: Fleet
) -> tuple[dict[str, list[AppliedRow]], frozenset[str]]:
    """Our objects by cluster, and the clusters that could not be read."""
    failed: dict[str, str] = {}
    rows = await rows_of_all(members.values(), fleet, failed)
    unread = frozenset(name for name in failed if not rows.get(name))
    for name, why in failed.items():
        text = "marks of a cluster could not be read" + ("" if name in unread else "; objects may be left there")
        log.warning(text, extra={"event": "MarksUnread", "cluster": name, "error": why})
    return {name: found for name, found in rows.items() if name not in unread}, unread


def _record(journal: Journal, fleet: Fleet, rows: Mapping[str, list[AppliedRow]], uids: Mapping[str, str]) -> None:
    known = journal.cluster_uids()
    for name, uid in sorted(uids.items()):
        if name not in known:
            journal.record_cluster(name, uid)
    journal.record_applied(row for _, found in sorted(rows.items()) for row in found)
    before = journal.previous_placements()
    told = placements_of(row for found in rows.values() for row in found)
    journal.patch_bindings(
        fleet.revision, {identity: _joined(before.get(identity), told[identity]) for identity in told}
    )


def _joined(before: PreviousPlacement | None, told: PreviousPlacement) -> PreviousPlacement:
    """Return the placement in marks, joined with the known one of other clusters and its group in use."""
    if before is None:
        return told
    targets = {target.cluster: target for target in (*before.targets, *told.targets)}
    return replace(before, targets=tuple(found for _, found in sorted(targets.items())))
