"""How the clusters of all shards are, as ConfigMaps beside the Leases: each shard writes its own, everybody reads all.

No round needs them, and nothing is decided by them: they are taken in beside the loop, and shown. A shard tells again
now and then though nothing is otherwise; how old what it tells is, is told by the clock of who reads. Source: ADR 22.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.clock import Clock, within
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited, fault_fields
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.daemon.shards.own_object import CONFIG_MAP, OwnObject
from reconciler.daemon.shards.own_picture import OwnPicture
from reconciler.daemon.vitals.board import Board, Shown
from reconciler.daemon.vitals.logs import Transitions
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.daemon.vitals.whole import told_problems
from reconciler.errors import MemberClusterError, ObjectNotFound
from reconciler.report.mask import scrub_text
from reconciler.report.status.state_document import Picture
from reconciler.report.status.told_document import told_document
from reconciler.stages.shards import (
    PictureTooLarge,
    ShardPicture,
    packed_in,
    packed_picture,
    picture_body,
    picture_name,
    read_picture,
)
from reconciler.stages.state import Others, ShardTold, shard_told

log = logging.getLogger("reconciler")

EVERY_S: Final = 2.0
"""How often a picture is written, where it is another one, and those of others are read."""
AGAIN_S: Final = 5.0
"""How often it is told that nothing is otherwise."""
STALE_S: Final = 15.0
"""So long what was told counts: nothing is to look fine that is not known to be fine."""
STUCK_S: Final = 30.0
"""A loop that shows no sign of life for so long, and for what it allows itself beside, tells nothing any more."""

_SHARE: Final = 10
"""So many times as long as a picture took to be made, or taken in, the next one is put off."""
_PUT_OFF_MAX_S: Final = 8.0
"""But no longer than this, with which nothing that is told grows stale."""


_NOTHING: Final = ShardTold()


class Teller(Struct, frozen=True, kw_only=True):
    """Who tells and reads: a process of a fleet, for its shard (empty: for none) beside all of these."""

    fleet: str
    shards: tuple[str, ...]
    shard: str
    process: str


class _Sight(Struct, frozen=True, kw_only=True):
    """What was read of a shard. `at_s`, `at`: when it told something new, by the clock that goes on and by the wall.

    `is_fresh`: it has told since this process looks; what lay there before may be of any age.
    """

    version: str
    packed: str
    told: ShardTold
    at_s: float
    at: str
    is_fresh: bool = False
    next_s: float = 0.0
    """Another picture is not taken in before."""


class Pictures:
    """Those of the other shards as far as this process has them, and its own as it was told."""

    def __init__(
        self,
        member: MemberCluster,
        teller: Teller,
        may_write: Callable[[], bool],
        since_boot_s: Callable[[], float],
    ) -> None:
        """Nothing is read yet. `member`: the cluster of the Leases. `since_boot_s`: seconds, also while it sleeps."""
        shard, process = teller.shard, teller.process
        self._member, self._fleet = member, teller.fleet
        self._shards = tuple(name for name in teller.shards if name != shard)
        self._own = OwnPicture(shard, process) if shard else None
        self._may_write, self._since_boot_s = may_write, since_boot_s
        self._sights: dict[str, _Sight] = {}
        self._faults: dict[str, str] = {}
        self._others = Others(shard=shard, process=process)
        self._recorded: tuple[Others, str, Picture | None] | None = None
        self._before: Shown | None = None
        """What was shown when the loop began: it may be of another shard."""
        self._pictured: tuple[Shown, ShardPicture, str] | None = None
        self._written: tuple[str, float] | None = None
        self._next_s = 0.0
        self._object = OwnObject(member, teller.fleet)
        self._told = Transitions(log)

    async def keep(self, vitals: Vitals, journal: Journal, clock: Clock) -> None:
        """Write how the clusters here are and read how they are elsewhere, until cancelled."""
        self._before = vitals.board.shown
        while True:
            await self.read(clock.now())
            vitals.board.take_in(self._others)
            await self.record(vitals.board, journal)
            written = await awaited(self._tell(vitals, clock))
            self._tell_fault(written.fault)
            await clock.sleep(EVERY_S)

    async def read(self, now: str) -> Others:
        """Read what the others tell; what is known then. The same value while nothing is otherwise. `now`: RFC 3339."""
        await asyncio.gather(*(self._look(name, now) for name in self._shards))
        before, told = self._others.told, {name: self._known(name) for name in self._shards}
        if any(found is not before.get(name) for name, found in told.items()):
            self._others = replace(self._others, told=told, at=now)
        return self._others

    async def _look(self, name: str, now: str) -> None:
        found = await awaited(within(self._read(name, now), PROMPT_S))
        fault = found.fault
        said = "" if fault is None else scrub_text(str(fault)) or "no answer in time"
        self._faults[name] = f"{self._member.name}: {said}" if said else ""
        if fault is not None and not isinstance(fault, MemberClusterError | TimeoutError):
            self._told.fault(f"picture of {name}", fault, "what a shard tells cannot be read", **fault_fields())

    async def _read(self, name: str, now: str) -> None:
        before = self._sights.get(name)
        try:
            live = await self._member.get(CONFIG_MAP, NAMESPACE, picture_name(self._fleet, name))
        except ObjectNotFound:
            return
        if before is not None and live.resource_version == before.version:
            return
        packed, now_s = packed_in(live.body), self._since_boot_s()
        if before is not None and packed == before.packed:
            told = before.told
        elif before is not None and now_s < before.next_s:
            return
        else:
            told = await asyncio.to_thread(_taken_in, packed, name)
        self._sights[name] = _Sight(
            version=live.resource_version,
            packed=packed,
            told=told,
            at_s=now_s,
            at=now,
            is_fresh=before is not None,
            next_s=self._put_off_s(now_s),
        )

    def _put_off_s(self, begun_s: float) -> float:
        """When the next is due after one that was begun then: a fleet that comes up tells a great deal."""
        ended_s = self._since_boot_s()
        return ended_s + min((ended_s - begun_s) * _SHARE, _PUT_OFF_MAX_S)

    def _known(self, name: str) -> ShardTold:
        """What a shard tells, with why it is not to be relied on, if that is so."""
        sight, before = self._sights.get(name), self._others.told.get(name)
        told, why = sight.told if sight is not None else _NOTHING, self._why_not(name, sight)
        if before is not None and before.picture is told.picture and before.why == why:
            return before
        return replace(told, why=why)

    def _why_not(self, name: str, sight: _Sight | None) -> str:
        """Why what a shard told is not to be relied on; empty: it is."""
        fault = self._faults.get(name, "")
        said = f"; it cannot be read: {fault}" if fault else ""
        if sight is None:
            return f"shard {name} has told nothing yet{said}"
        if sight.told.why:
            return sight.told.why
        if not sight.is_fresh:
            return f"shard {name} has told nothing since this process looks{said}"
        is_old = self._since_boot_s() - sight.at_s > STALE_S
        return f"shard {name} has not told since {sight.at}{said}" if is_old else ""

    async def record(self, board: Board, journal: Journal, base: Picture | None = None) -> None:
        """Write what the others tell into the journal, for commands that only read.

        `base`: what this process shows while it stands by, since it makes no rounds then; None: it makes rounds.
        """
        whole, others = board.whole, self._others
        if whole is None or whole.picture.state.facts is None:
            return
        # What is told of them is told beside the revision that is in force here.
        revision, before = whole.picture.round.decision.fleet.revision, self._recorded
        is_same = before is not None and before[0] is others and before[1] == revision and before[2] is base
        if not is_same:
            problems = tuple(told_problems(others, whole.picture.state))
            journal.record_told(await asyncio.to_thread(told_document, whole.picture, others, problems, base))
            self._recorded = (others, revision, base)

    async def _tell(self, vitals: Vitals, clock: Clock) -> None:
        shown, now_s = vitals.board.shown, self._since_boot_s()
        if self._own is None or shown is None or shown is self._before or not self._may_write():
            return
        if clock.monotonic_s() - vitals.heartbeat_s > STUCK_S + vitals.allowance_s:
            return
        if self._pictured is None or (self._pictured[0] is not shown and now_s >= self._next_s):
            picture, packed = await asyncio.to_thread(_pictured, self._own, shown)
            self._pictured = (shown, picture, packed)
            self._next_s = self._put_off_s(now_s)
        _, picture, packed = self._pictured
        if self._written is None or self._written[0] != packed or now_s - self._written[1] >= AGAIN_S:
            name = picture_name(self._fleet, picture.shard)
            await within(
                self._object.write(name, picture_body(name, NAMESPACE, picture, packed, clock.now())), PROMPT_S
            )
            self._written = (packed, now_s)

    def _tell_fault(self, fault: Exception | None) -> None:
        if fault is None:
            self._told.leave("own", "the others are told how the clusters are", event="PictureTold")
            return
        is_told = isinstance(fault, MemberClusterError | TimeoutError | PictureTooLarge)
        why = str(fault) or "no answer in time"
        text = "how the clusters are cannot be told to the other processes, which show them as unknown"
        extra = {"event": "PictureFailed", "cluster": self._member.name, **({} if is_told else fault_fields())}
        self._told.enter("own", why, logging.WARNING, text, **extra, error=why)


def _pictured(own: OwnPicture, shown: Shown) -> tuple[ShardPicture, str]:
    picture = own.of(shown)
    return picture, packed_picture(picture)


def _taken_in(packed: str, shard: str) -> ShardTold:
    picture = read_picture(packed, shard)
    if picture is None:
        return ShardTold(why=f"what shard {shard} tells is not understood; it may run another version")
    return shard_told(picture)
