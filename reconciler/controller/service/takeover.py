"""The takeover of a new leader before it acts: it learns the last leader's state, and raises the term above every mark.

The state is in the marks of the clusters and in the last leader's handover; a journal that led last has all of it. The
store must not be older than the revision in force, or a standby with an old clone would undo reviewed changes; a plain
directory has no order. Source: ADR 20.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, EventKind
from reconciler.api.refs import GVK, short_revision
from reconciler.clock import Clock
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.cluster_reads.read_clusters import answering
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once.marked_objects import documents_of, placements_of, rows_of_all
from reconciler.controller.round.owner_record import NAMESPACE, OwnerRecord, is_own
from reconciler.controller.round.ownership_lock import OwnershipLock, marks_of, put_own
from reconciler.controller.service.elector import Elector
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.tasks import in_thread
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import AlreadyExists, ObjectNotFound, StoreError, StoreIsOlder, WriteConflict
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import Handover, handover_body, handover_name, read_handover
from reconciler.ownership import field_manager

log = logging.getLogger("reconciler")

_ASKED_MAX: Final = 5
"""So often at most: then another process may have what this one lacks."""
_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class HandoverFile:
    """The handover that a leader leaves: one ConfigMap, which must be as this process wrote or read it last."""

    def __init__(self, member: MemberCluster, fleet: str) -> None:
        self._member = member
        self._fleet = fleet
        self._live: LiveObject | None = None
        self._written: Handover | None = None

    async def read(self) -> Handover | None:
        """Return the last leader's handover; None: there was none. Raises MemberClusterError: it cannot be read."""
        self._live = await self._member.find(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        return read_handover(self._live.body) if self._live is not None else None

    async def is_spoiled(self) -> bool:
        """Return whether others changed or deleted the last written handover; it is written again then.

        Raises MemberClusterError: it cannot be read.
        """
        live = await self._member.find(_CONFIG_MAP, NAMESPACE, handover_name(self._fleet))
        if live is None or self._live is None or live.resource_version != self._live.resource_version:
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
            there = await self.read()
            is_same = there is None or (there.journal, there.term) == (left.journal, left.term)
            if there is not None and not is_same and there.term >= left.term:
                self._live = before  # Whoever leads later is not written over at the next attempt either.
                raise
            await self._write(numbered)
        self._written = left

    async def _write(self, left: Handover) -> None:
        name, manager = handover_name(self._fleet), field_manager(self._fleet)
        body = handover_body(self._fleet, NAMESPACE, left)
        self._live = await put_own(self._member, _CONFIG_MAP, name, body, self._live, manager)


async def take_over(
    fleet: Fleet, journal: Journal, members: MemberClusters, elector: Elector, left_there: HandoverFile, clock: Clock
) -> Handover | None:
    """Learn the last leader's state and leave it for the next one; None: another process leads by now.

    `leaders` of the result: journals of all former leaders, this one first. `revision`: of the store, at the beginning
    of this term. `unread`: clusters with unread marks; nothing is done there before they are read.

    Raises:
        MemberClusterError: what was left, or the Lease, cannot be read or written.
        JournalError: it cannot be recorded.
    """
    left = await left_there.read()
    reachable, uids = await answering(fleet, members, journal.cluster_uids())
    answered = answered_by(reachable)
    holder = OwnershipLock(journal, clock)
    marks = await marks_of(answered.values(), fleet.settings.name)
    # In a term that no mark has: a Lease that somebody deleted begins to count again.
    terms = [mark.term for mark in marks.values() if mark.term is not None]
    highest = max([*terms, left.term if left is not None else 0], default=0)
    if elector.term is None or (elector.term <= highest and not await elector.raise_term(highest)):
        return None
    if _is_known(journal, marks, left):
        unread = frozenset(left.unread if left is not None else ()) & fleet.clusters.keys()
    else:
        unread = await _learn(fleet, journal, (answered, uids), left, holder, clock)
    led = sorted({mark.journal for mark in marks.values() if mark.term is not None})
    leaders = dict.fromkeys((journal.uuid, *(left.leaders if left is not None else ()), *led))
    term = elector.term or 0
    handover = Handover(
        journal=journal.uuid, term=term, revision=fleet.revision, leaders=tuple(leaders), unread=tuple(sorted(unread))
    )
    await left_there.write(left_by(journal, elector, handover), journal.count_left)
    return handover


def left_by(journal: Journal, elector: Elector, handover: Handover) -> Handover:
    """Return the present handover."""
    return replace(
        handover,
        term=elector.term or 0,
        revision=journal.revision_in_force or handover.revision,
        tables=journal.handover(),
        placements=journal.previous_placements(),
    )


async def read_unread(
    fleet: Fleet, journal: Journal, members: MemberClusters, unread: Iterable[str], clock: Clock
) -> frozenset[str]:
    """Read the marks of clusters that could not be read when this process began to lead; those that still cannot."""
    waiting = frozenset(unread)
    reachable, uids = await answering(fleet, members, journal.cluster_uids(), waiting)
    answered = answered_by(reachable)
    if not answered:
        return waiting
    await OwnershipLock(journal, clock).read_back(answered.values(), fleet.settings.name)
    rows, failed = await _rows(answered, fleet)
    with journal.transaction(durable=True):
        _record(journal, fleet, rows, uids)
    return waiting - answered.keys() | failed


def _is_known(journal: Journal, marks: Mapping[str, OwnerRecord], left: Handover | None) -> bool:
    """Return whether this journal led last, or nobody ever did under a Lease. One from a backup is outdated."""
    if any(mark.journal == journal.uuid and not is_own(mark, journal.holds(name)) for name, mark in marks.items()):
        return False
    if left is not None:
        return left.journal == journal.uuid and left.number <= journal.left
    return not any(mark.term is not None and mark.journal != journal.uuid for mark in marks.values())


async def _learn(
    fleet: Fleet,
    journal: Journal,
    reached: tuple[Mapping[str, MemberCluster], Mapping[str, str]],
    left: Handover | None,
    holder: OwnershipLock,
    clock: Clock,
) -> frozenset[str]:
    """Fill the journal from the marks and the handover; return the clusters that could not be read."""
    members, uids = reached
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
        else:
            journal.record_rollout_documents(documents_of(journal.rollout_records()))
        count = sum(map(len, rows.values()))
        data = {"revision": fleet.revision, "who": "this process, which leads now", "objects": count}
        journal.record_event(EventKind.TAKEN_OVER, "fleet", data, clock.now())
    return frozenset(fleet.clusters.keys() - members.keys()) | failed


async def _rows(
    members: Mapping[str, MemberCluster], fleet: Fleet
) -> tuple[dict[str, list[AppliedRow]], frozenset[str]]:
    failed: dict[str, str] = {}
    rows = await rows_of_all(members.values(), fleet, failed)
    unread = frozenset(name for name in failed if not rows.get(name))
    for name, why in failed.items():
        text = "marks of a cluster could not be read" + ("" if name in unread else "; objects may be left there")
        log.warning(text, extra={"event": "MarksUnread", "cluster": name, "error": why})
    return {name: listed for name, listed in rows.items() if name not in unread}, unread


def _record(journal: Journal, fleet: Fleet, rows: Mapping[str, list[AppliedRow]], uids: Mapping[str, str]) -> None:
    journal.record_clusters(uids)
    journal.record_applied(row for _, listed in sorted(rows.items()) for row in listed)
    before = journal.previous_placements()
    placements = placements_of(row for listed in rows.values() for row in listed)
    for identity in placements.keys() & before.keys():
        # The known one of other clusters, and its group in use, stay.
        targets = {target.cluster: target for target in (*before[identity].targets, *placements[identity].targets)}
        placements[identity] = replace(before[identity], targets=tuple(target for _, target in sorted(targets.items())))
    journal.patch_bindings(fleet.revision, dict(placements))


async def catch_up(parts: LoopParts, follower: StoreFollower, left: str) -> None:
    """Ask the store again until its revision is not older than `left`, which was in force under the last leader.

    A store that answers without that revision is trusted after as many answers.

    Raises StoreIsOlder: this process must not lead by what it has.
    """
    transitions = Transitions()
    for attempts in itertools.count(1):
        fault = (await try_await(parts.source.ask_now())).fault
        if fault is not None and not isinstance(fault, StoreError):
            log.error("the store cannot be asked for a fault of the program", exc_info=fault, extra=fault_fields())
        await follower.read()
        assert follower.fleet is not None, "it was read before"
        revision = follower.fleet.revision
        is_older = await in_thread(_is_older, parts, revision, left)
        if is_older is False:
            return
        what = f"it is at {short_revision(revision)}, and {short_revision(left)} was in force"
        why = f"{what}: {fault or 'nothing newer came'}"
        if attempts < _ASKED_MAX:
            transitions.enter("older", why, logging.WARNING, "the store that was read is older than what was in force",
                       event="StoreIsOlder", rev=revision, error=why)  # fmt: skip
            await parts.access.clock.sleep(timing.LOOK_S)
            continue
        if is_older or fault is not None:
            raise StoreIsOlder(why)
        log.warning(
            "going on without the revision that was in force: the store does not have it any more",
            extra={"event": "StoreRewritten", "rev": revision, "error": f"{left} is not there"},
        )
        return


def _is_older(parts: LoopParts, revision: str, left: str) -> bool | None:
    """Return whether a revision is older; None: the other one was never fetched, so is newer, or of a lost branch."""
    if left in ("", revision) or left.startswith("dir:") or revision.startswith("dir:"):
        return False
    if left in parts.source.ancestry({left}, revision).order:
        return False
    line = parts.source.ancestry({revision}, left)
    return None if left in line.missing or not line.order else revision in line.order
