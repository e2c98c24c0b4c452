"""The ownership lock: one journal per fleet and cluster, and one process with it, by a ConfigMap in every member.

Another journal is refused, with the owner's name, until `journal rebuild --takeover` (design#one-writer). A journal may
have been copied, so the owner record has an epoch, which every process raises before it writes to the cluster: a
process that then finds another record stops writing. The journal has the record first, so that a crash leaves no record
unknown to its journal.

The record also has the active revisions of rollouts, from which a lost journal is built again. They are in the record
first, and are trusted if they began later than the journal's. Runs of deleted hooks are in the journal first, then in
the record, and only then the hook is deleted: our journal knows more, another one learns of them. Source: ADR 26.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject
from reconciler.api.refs import GVK
from reconciler.api.rollout_progress import Record
from reconciler.clock import Clock, within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import why_unread
from reconciler.controller.inbox import ClusterChanged, ClusterScope, Inbox
from reconciler.controller.round.owner_record import (
    NAMESPACE,
    OwnerRecord,
    copy_refusal,
    deposed,
    holder_name,
    hook_entries,
    hook_rows,
    hooks_in,
    is_own,
    mark_body,
    read_mark,
)
from reconciler.errors import (
    ANOTHER_CLUSTER,
    AlreadyExists,
    ClusterReplaced,
    Deposed,
    FleetHeld,
    HeldByCopy,
    MemberClusterError,
    NotLeading,
    ObjectNotFound,
    WriteConflict,
)
from reconciler.fail_points import reach
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.ownership import field_manager
from reconciler.rollouts import believed, entries_of, has_beginnings, is_past, records_of_entries

_NAMESPACE = GVK("", "v1", "Namespace")
_CONFIG_MAP = GVK("", "v1", "ConfigMap")
_ATTEMPTS = 5
"""Limit of reading the record again after others wrote it."""
_NOTHING: Final[Mapping[str, Record]] = {}


async def put_own(
    member: MemberCluster, gvk: GVK, name: str, body: JsonObject, live: LiveObject | None, manager: str
) -> LiveObject:
    """Create an object of our own in a cluster, with its namespace, or write it in the place of `live`.

    Raises MemberClusterError: it cannot be written.
    """
    if live is None:
        await ensure_namespace(member, manager)
        return await member.create(gvk, NAMESPACE, name, body, manager=manager)
    at, version = (gvk, NAMESPACE, name), live.resource_version
    return await member.apply(*at, body, manager=manager, force=True, uid=live.uid, resource_version=version)


async def ensure_namespace(member: MemberCluster, manager: str) -> None:
    """Create the namespace of our own objects in a cluster, if missing.

    Raises MemberClusterError: it cannot be made.
    """
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    with contextlib.suppress(AlreadyExists):
        await member.create(_NAMESPACE, "", NAMESPACE, body, manager=manager)


class OwnershipLock:
    """Holds the fleet for one process with one journal."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        host: str = "",
        *,
        term: Callable[[], int | None] = lambda: None,
        predecessors: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Own nothing yet. `host`: the name of this process for people; empty: this machine's name.

        `term`: of the Lease under which this process leads; None: the fleet has one process, and no Lease.
        `predecessors`: journals of processes that led under a Lease before; records without a term are theirs.
        """
        self._journal = journal
        self._clock = clock
        self._host = host or platform.node()
        self._token = secrets.token_hex(8)
        self._term = term
        self._predecessors = predecessors
        self.inbox = Inbox()
        """Is sent clusters with an older mark of ours than one that was there: they went back to an earlier state."""
        self._epochs: dict[str, int] = {}
        self._pending: dict[str, dict[str, Record]] = {}
        """By cluster and rollout what begins there: in the mark, and in the journal a moment later."""
        self._written: dict[str, frozenset[str]] = {}
        """By cluster the entries that this process ever wrote: those of others are left alone."""

    async def hold(
        self, members: Iterable[MemberCluster], fleet: str, *, take_over: bool = False, within_s: float | None = None
    ) -> dict[str, MemberClusterError]:
        """Lock every member for this process; return per cluster the error that prevented it.

        A second call reads the record and compares; it is written again if the rollouts in it differ from the
        beginnings and records. A new owner takes the record's rollouts into its journal. HeldByCopy: a copy of this
        journal was started later. `within_s`: the time limit for a cluster, which is tried again with the next write;
        None: the client's own deadlines.

        Raises FleetHeld: another journal holds it somewhere; nothing is written anywhere by the caller then.
        """
        failed: dict[str, MemberClusterError] = {}

        async def one(member: MemberCluster) -> None:
            holding = self._hold(member, fleet, take_over=take_over)
            held = await try_await(holding if within_s is None else within(holding, within_s))
            if held.fault is not None:
                failed[member.name] = _error_of(member, held.fault)

        await asyncio.gather(*(one(member) for member in members))
        return failed

    async def enter(self, member: MemberCluster, fleet: str, begun: Mapping[str, Record]) -> MemberClusterError | None:
        """Write into the mark of a member which revisions begin there, by rollout. None: the mark says so.

        Before the journal has them, and before anything of these revisions is written: of two that disagree, the mark
        is never the older one. The fleet is held there afterwards. Without `begun`, the mark is brought up to the
        journal. An error also where the mark knew of a rollout in `begun` what the journal did not: it does now, and
        what begins is to be asked again.

        Raises FleetHeld: another journal holds the fleet there.
        """
        pending = self._pending.setdefault(member.name, {})
        pending.update(begun)
        is_entered = False
        try:
            held = await try_await(self._hold(member, fleet, begun=begun))
            is_entered = held.fault is None
        finally:
            for name in [] if is_entered else [name for name in begun if pending.get(name) is begun[name]]:
                del pending[name]
        return None if is_entered else _error_of(member, held.fault)

    async def read_back(self, members: Iterable[MemberCluster], fleet: str) -> dict[str, MemberClusterError]:
        """Take the rollouts and hooks of records into the journal, whoever wrote them; return errors by cluster."""
        marks = await _marks_in(members, fleet)
        with self._journal.transaction():
            for name, mark in marks.items():
                if isinstance(mark, OwnerRecord):
                    self._record_rollouts(name, mark)
                    self._record_hooks(name, mark)
        return {name: why for name, why in marks.items() if not isinstance(why, OwnerRecord | ObjectNotFound)}

    async def _hold(
        self, member: MemberCluster, fleet: str, *, take_over: bool = False, begun: Mapping[str, Record] = _NOTHING
    ) -> None:
        news, ran = frozenset[str](), False
        for attempt in range(1, _ATTEMPTS + 1):
            live = await member.find(_CONFIG_MAP, NAMESPACE, holder_name(fleet))
            if live is None:
                await self._same(member)
            mark = read_mark(live) if live is not None else OwnerRecord(journal=self._journal.uuid)
            if not take_over:
                self._refuse(member.name, fleet, mark)
            is_held = live is not None and self._is_this(member.name, mark)
            if not is_held:
                news |= self._record_rollouts(member.name, mark)
                # Of ours the journal knows all, and newer runs.
                ran |= mark.journal != self._journal.uuid and self._record_hooks(member.name, mark)
            overtaken = sorted(news & begun.keys())
            entries = self._entries(member.name, overtaken)
            try:
                if not is_held:
                    await self._raise_epoch(member, fleet, mark, live, entries)
                elif not self._is_recorded(member.name, mark, entries):
                    await self._write(member, fleet, mark, live, entries)
            except (AlreadyExists, WriteConflict):
                if attempt == _ATTEMPTS:
                    raise
                continue
            if overtaken or ran:
                what = f"rollout {', '.join(overtaken)}" if overtaken else "hooks"
                why = f"its mark told of {what} what the journal did not know"
                raise MemberClusterError(member.name, f"{why}; it is planned again")
            return

    async def _same(self, member: MemberCluster) -> None:
        """Nothing, unless our mark is gone with its cluster: another one may answer under the name by now.

        Raises ClusterReplaced: it does.
        """
        if member.name not in self._epochs:
            return
        known = self._journal.cluster_uids().get(member.name)
        if known is not None and await member.identity() != known:
            raise ClusterReplaced(member.name, ANOTHER_CLUSTER)

    async def _raise_epoch(
        self, member: MemberCluster, fleet: str, mark: OwnerRecord, live: LiveObject | None, entries: Mapping[str, str]
    ) -> None:
        """Raise the epoch: from now on this process holds the fleet there."""
        known = self._journal.holds(member.name)
        confirmed = max((hold.epoch for hold in known if hold.is_confirmed), default=0)
        epoch = max(mark.epoch, confirmed) + 1
        if live is not None and mark.journal == self._journal.uuid and mark.epoch < confirmed:
            # A later mark of ours was there: only a backup that was put back has the one before.
            self.inbox.send(ClusterChanged(member.name, ClusterScope.RESTORED))
        # First in the journal: whatever becomes of the request, this mark will be known as ours.
        self._journal.intend_hold(member.name, epoch, self._token)
        own = OwnerRecord(
            journal=self._journal.uuid, epoch=epoch, token=self._token, host=self._host,
            since=self._clock.now(), term=self._term(),
        )  # fmt: skip
        await self._write(member, fleet, own, live, entries)
        self._journal.confirm_hold(member.name, epoch, self._token)
        self._epochs[member.name] = epoch

    def _record_rollouts(self, cluster: str, mark: OwnerRecord) -> frozenset[str]:
        """Record the trusted rollouts of an owner record; return their names."""
        records, news = self._journal.rollout_records(), set()
        for name, marked in records_of_entries(mark.entries, self._clock.now()).items():
            record = believed(records.get(name, {}).get(cluster), marked)
            if record is not None:
                self._journal.record_rollouts(name, {cluster: record})
                news.add(name)
        return frozenset(news)

    def _record_hooks(self, cluster: str, mark: OwnerRecord) -> bool:
        """Record the runs of hooks in an owner record; return whether any is news."""
        known = self._journal.ledger().get(cluster, {})
        pairs = ((row, known.get(row.identity)) for row in hook_rows(cluster, mark.entries))
        news = [row for row, other in pairs if other is None or hook_entries([row]) != hook_entries([other])]
        if news:
            self._journal.record_applied(news)
        return bool(news)

    def _entries(self, cluster: str, overtaken: Iterable[str]) -> dict[str, str]:
        records = {name: each[cluster] for name, each in self._journal.rollout_records().items() if cluster in each}
        pending = self._pending.setdefault(cluster, {})
        for name, record in tuple(pending.items()):
            if name in overtaken or is_past(records.get(name), record):
                del pending[name]
        return entries_of({**records, **pending}) | hook_entries(self._journal.ledger().get(cluster, {}).values())

    def _is_recorded(self, cluster: str, mark: OwnerRecord, entries: Mapping[str, str]) -> bool:
        is_left = self._written.get(cluster, frozenset()) & mark.entries.keys() <= entries.keys()
        return is_left and hooks_in(mark.entries) == hooks_in(entries) and has_beginnings(mark.entries, entries)

    def _is_this(self, cluster: str, mark: OwnerRecord) -> bool:
        own = (self._journal.uuid, self._epochs.get(cluster), self._token, self._term())
        return (mark.journal, mark.epoch, mark.token, mark.term) == own

    def _is_past_leader(self, mark: OwnerRecord) -> bool:
        """Return whether the record's writer led before, and does so no more: the Lease is ours now."""
        term = self._term()
        if term is None:
            return False
        return mark.term < term if mark.term is not None else mark.journal in self._predecessors()

    def _refuse(self, cluster: str, fleet: str, mark: OwnerRecord) -> None:
        if self._is_past_leader(mark):
            return
        term = self._term()
        if term is not None and mark.term is not None and (mark.term > term or mark.token != self._token):
            raise Deposed(deposed(cluster, fleet, mark), mark.term)
        if mark.journal != self._journal.uuid:
            raise FleetHeld(
                f"{cluster}: fleet {fleet} is held by {mark}; use that journal, or take the fleet over with "
                "'reconciler journal rebuild --takeover'"
            )
        if not is_own(mark, self._journal.holds(cluster)):
            raise HeldByCopy(cluster, copy_refusal(fleet, mark))

    async def _write(
        self, member: MemberCluster, fleet: str, mark: OwnerRecord, live: LiveObject | None, entries: Mapping[str, str]
    ) -> None:
        """Write the mark of this process, with the epoch and the time of `mark`, in the place of `live`."""
        name, manager, body = holder_name(fleet), field_manager(fleet), mark_body(fleet, mark, entries)
        self._written[member.name] = self._written.get(member.name, frozenset()) | entries.keys()
        if entries:
            reach("before entries of rollouts are written")
        await put_own(member, _CONFIG_MAP, name, body, live, manager)
        if entries:
            reach("after entries of rollouts were written")

    async def lost(self, member: MemberCluster, fleet: str) -> MemberClusterError | None:
        """Return why this process no longer owns a member; None: it does. Only reads."""
        read = await try_await(_mark_in(member, fleet))
        if read.value is None:
            return _error_of(member, read.fault)
        mark, term = read.value, self._term()
        if self._is_this(member.name, mark):
            return None
        if term is not None and mark.term is not None and mark.term > term:
            return NotLeading(member.name, deposed(member.name, fleet, mark))
        return HeldByCopy(member.name, copy_refusal(fleet, mark))

    async def held_by(self, members: Iterable[MemberCluster], fleet: str) -> dict[str, OwnerRecord]:
        """Per member the mark of somebody else; only read. A member that cannot be asked is left out."""
        marks = await marks_of(members, fleet)
        others: dict[str, OwnerRecord] = {}
        for name, mark in marks.items():
            is_ours = mark.journal == self._journal.uuid and is_own(mark, self._journal.holds(name))
            if not (is_ours or self._is_past_leader(mark)):
                others[name] = mark
        return others

    async def copies(self, members: Iterable[MemberCluster], fleet: str) -> dict[str, str]:
        """Per member why it is not written to: a copy of this journal holds the fleet there.

        Raises FleetHeld: another journal holds it in any of the members; it is named.
        """
        marks = await self.held_by(members, fleet)
        for name, mark in marks.items():
            if mark.journal != self._journal.uuid:
                self._refuse(name, fleet, mark)
        return {name: copy_refusal(fleet, mark) for name, mark in marks.items()}

    async def refuse_others(self, members: Iterable[MemberCluster], fleet: str) -> None:
        """Nothing, when nobody else holds the fleet in any of the members.

        Raises FleetHeld: somebody does; it is named.
        """
        for name, why in (await self.copies(members, fleet)).items():
            raise FleetHeld(f"{name}: {why}")


def _error_of(member: MemberCluster, fault: Exception | None) -> MemberClusterError:
    if isinstance(fault, MemberClusterError):
        return fault
    return MemberClusterError(member.name, why_unread(member.name, fault, silence="no answer in time"))


async def _mark_in(member: MemberCluster, fleet: str) -> OwnerRecord:
    return read_mark(await member.get(_CONFIG_MAP, NAMESPACE, holder_name(fleet)))


async def marks_of(members: Iterable[MemberCluster], fleet: str) -> dict[str, OwnerRecord]:
    """The mark of each member that has one, whoever wrote it. A member that cannot be asked is left out."""
    return {name: mark for name, mark in (await _marks_in(members, fleet)).items() if isinstance(mark, OwnerRecord)}


async def _marks_in(members: Iterable[MemberCluster], fleet: str) -> dict[str, OwnerRecord | MemberClusterError]:
    """The mark of each member, or why there is none to be read; in the order of their names."""

    async def one(member: MemberCluster) -> tuple[str, OwnerRecord | MemberClusterError]:
        read = await try_await(within(_mark_in(member, fleet), timing.PROMPT_S))
        return member.name, read.value or _error_of(member, read.fault)

    return dict(sorted(await asyncio.gather(*map(one, members)), key=lambda each: each[0]))
