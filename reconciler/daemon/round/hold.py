"""One journal per fleet and cluster, and one process with it: a ConfigMap in every member names who holds the fleet.

Source: design#one-writer: another journal is refused, with who holds it, until `journal rebuild --takeover`. A
journal may have been copied, with the machine or from a backup. So the mark has an epoch, which every process raises
before it writes to the cluster: whoever then finds another mark than its own is not the last one and stops writing.
What is about to be written is in the journal first, so that a crash leaves no mark that its own journal does not know.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import secrets
from collections.abc import Iterable

from msgspec import Struct

from reconciler.adapters.clock import Clock
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited
from reconciler.daemon.observing.members import PROMPT_S, told_fault
from reconciler.errors import (
    AlreadyExists,
    FleetHeld,
    HeldByCopy,
    MemberClusterError,
    ObjectNotFound,
    WriteConflict,
)
from reconciler.model.ledger import HoldRecord
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.ownership import field_manager

NAMESPACE = "fleet-system"
_CONFIG_MAP = GVK("", "v1", "ConfigMap")
_NAMESPACE = GVK("", "v1", "Namespace")
_ATTEMPTS = 5
"""How often the mark is read again after somebody else wrote it."""


class Mark(Struct, frozen=True, kw_only=True):
    """What the ConfigMap says. `epoch` is 0 and `token` empty where an earlier version wrote it."""

    journal: str
    epoch: int = 0
    token: str = ""
    host: str = ""
    since: str = ""

    def __str__(self) -> str:
        """Who holds the fleet, since when and where, for people."""
        epoch = f", epoch {self.epoch}" if self.epoch else ""
        since = f" since {self.since}" if self.since else ""
        return f"journal {self.journal}{epoch}{since}" + (f" on host {self.host}" if self.host else "")


def read_mark(live: LiveObject) -> Mark:
    """The mark that an object carries. What is no epoch counts as none."""
    data = dig(live.body, "data")
    found = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
    epoch = found.get("epoch", "")
    return Mark(
        journal=found.get("journal", ""),
        epoch=int(epoch) if epoch.isascii() and epoch.isdigit() and len(epoch) < 16 else 0,
        token=found.get("instance", ""),
        host=found.get("host", ""),
        since=found.get("since") or str(dig(live.body, "metadata", "creationTimestamp") or ""),
    )


def is_own(mark: Mark, known: tuple[HoldRecord, ...]) -> bool:
    """Whether a mark with our journal's name is what this journal wrote last, or older than that.

    An older one is of an earlier version, or of a cluster that was restored; a newer one, or another one of the same
    epoch, was written with a copy of the journal.
    """
    confirmed = max((found.epoch for found in known if found.is_confirmed), default=0)
    is_known = any((found.epoch, found.token) == (mark.epoch, mark.token) for found in known)
    return mark.epoch == 0 or is_known or mark.epoch < confirmed


class Holder:
    """Holds the fleet for one process with one journal."""

    def __init__(self, journal: Journal, clock: Clock, host: str = "") -> None:
        """Nothing is held yet. `host`: how people find this process; empty: this machine's name."""
        self._journal = journal
        self._clock = clock
        self._host = host or platform.node()
        self._token = secrets.token_hex(8)
        self._epochs: dict[str, int] = {}

    async def hold(
        self, members: Iterable[MemberCluster], fleet: str, *, take_over: bool = False
    ) -> dict[str, MemberClusterError]:
        """Make sure that this process holds the fleet in every member; per cluster the error that prevented it.

        Asked again, it reads the mark and compares. HeldByCopy: a copy of this journal was started later.

        Raises:
            FleetHeld: another journal holds it somewhere; nothing is written anywhere by the caller then.
        """
        failed: dict[str, MemberClusterError] = {}

        async def one(member: MemberCluster) -> None:
            found = await awaited(self._hold(member, fleet, take_over=take_over))
            if found.fault is not None:
                failed[member.name] = _error_of(member, found.fault)

        await asyncio.gather(*(one(member) for member in members))
        return failed

    async def _hold(self, member: MemberCluster, fleet: str, *, take_over: bool) -> None:
        name = holder_name(fleet)
        for attempt in range(1, _ATTEMPTS + 1):
            known = self._journal.holds(member.name)
            try:
                live = await member.get(_CONFIG_MAP, NAMESPACE, name)
            except ObjectNotFound:
                live = None
            mark = read_mark(live) if live is not None else Mark(journal=self._journal.uuid)
            if not take_over:
                self._refuse(member.name, fleet, mark)
            if live is not None and self._is_this(member.name, mark):
                return
            confirmed = max((found.epoch for found in known if found.is_confirmed), default=0)
            epoch = max(mark.epoch, confirmed) + 1
            # First in the journal: whatever becomes of the request, this mark will be known as ours.
            self._journal.intend_hold(member.name, epoch, self._token)
            try:
                await self._write(member, fleet, epoch, live)
            except (AlreadyExists, WriteConflict):
                if attempt == _ATTEMPTS:
                    raise
                continue
            self._journal.confirm_hold(member.name, epoch, self._token)
            self._epochs[member.name] = epoch
            return

    def _is_this(self, cluster: str, mark: Mark) -> bool:
        return (mark.journal, mark.epoch, mark.token) == (self._journal.uuid, self._epochs.get(cluster), self._token)

    def _refuse(self, cluster: str, fleet: str, mark: Mark) -> None:
        if mark.journal != self._journal.uuid:
            raise FleetHeld(_refusal(cluster, fleet, mark))
        if not is_own(mark, self._journal.holds(cluster)):
            raise HeldByCopy(cluster, _copy_refusal(fleet, mark))

    async def _write(self, member: MemberCluster, fleet: str, epoch: int, live: LiveObject | None) -> None:
        name, manager, body = holder_name(fleet), field_manager(fleet), self._body(fleet, epoch)
        if live is not None:
            await member.apply(
                *(_CONFIG_MAP, NAMESPACE, name, body),
                manager=manager, force=True, uid=live.uid, resource_version=live.resource_version,
            )  # fmt: skip
            return
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        with contextlib.suppress(AlreadyExists):
            await member.create(_NAMESPACE, "", NAMESPACE, namespace, manager=manager)
        await member.create(_CONFIG_MAP, NAMESPACE, name, body, manager=manager)

    def _body(self, fleet: str, epoch: int) -> JsonObject:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": holder_name(fleet), "namespace": NAMESPACE},
            "data": {
                "fleet": fleet,
                "journal": self._journal.uuid,
                "epoch": str(epoch),
                "instance": self._token,
                "host": self._host,
                "since": self._clock.now(),
            },
        }

    async def lost(self, member: MemberCluster, fleet: str) -> MemberClusterError | None:
        """Why this process no longer holds the fleet in a member; None: it does. Only read."""
        found = await awaited(_mark_in(member, fleet))
        if found.value is None:
            return _error_of(member, found.fault)
        is_held = self._is_this(member.name, found.value)
        return None if is_held else HeldByCopy(member.name, _copy_refusal(fleet, found.value))

    async def held_by(self, members: Iterable[MemberCluster], fleet: str) -> dict[str, Mark]:
        """Per member the mark of somebody else; only read. A member that cannot be asked is left out."""

        async def one(member: MemberCluster) -> tuple[str, Mark | None]:
            found = await awaited(asyncio.wait_for(_mark_in(member, fleet), PROMPT_S))
            mark = found.value
            if mark is None:
                _error_of(member, found.fault)
                return member.name, None
            is_ours = mark.journal == self._journal.uuid and is_own(mark, self._journal.holds(member.name))
            return member.name, None if is_ours else mark

        found = await asyncio.gather(*(one(member) for member in members))
        return {name: mark for name, mark in sorted(found) if mark is not None}

    async def copies(self, members: Iterable[MemberCluster], fleet: str) -> dict[str, str]:
        """Per member why it is not written to: a copy of this journal holds the fleet there.

        Raises:
            FleetHeld: another journal holds it in any of the members; it is named.
        """
        found = await self.held_by(members, fleet)
        for name, mark in found.items():
            if mark.journal != self._journal.uuid:
                raise FleetHeld(_refusal(name, fleet, mark))
        return {name: _copy_refusal(fleet, mark) for name, mark in found.items()}

    async def refuse_others(self, members: Iterable[MemberCluster], fleet: str) -> None:
        """Nothing, when nobody else holds the fleet in any of the members.

        Raises:
            FleetHeld: somebody does; it is named.
        """
        for name, why in (await self.copies(members, fleet)).items():
            raise FleetHeld(f"{name}: {why}")


def _error_of(member: MemberCluster, fault: Exception | None) -> MemberClusterError:
    """The boundary of one cluster whose mark is read or written: why it was not. A fault of ours is logged."""
    assert fault is not None, "what gives nothing has failed"
    if isinstance(fault, MemberClusterError):
        return fault
    is_silent = isinstance(fault, TimeoutError)
    return MemberClusterError(member.name, "no answer in time" if is_silent else told_fault(member.name, fault))


async def _mark_in(member: MemberCluster, fleet: str) -> Mark:
    return read_mark(await member.get(_CONFIG_MAP, NAMESPACE, holder_name(fleet)))


def holder_name(fleet: str) -> str:
    """The ConfigMap's name."""
    return f"fleet-{fleet}"


def _refusal(member: str, fleet: str, mark: Mark) -> str:
    return (
        f"{member}: fleet {fleet} is held by {mark}; use that journal, or take the fleet over with "
        "'reconciler journal rebuild --takeover'"
    )


def _copy_refusal(fleet: str, mark: Mark) -> str:
    return (
        f"fleet {fleet} is held by a copy of this journal: {mark}; nothing is written here. Let that one go on and "
        "stop this one, or stop that one and take the fleet over with 'reconciler journal rebuild --takeover'"
    )
