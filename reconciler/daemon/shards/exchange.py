"""The accounts of the processes of a fleet, as ConfigMaps beside the Lease: each writes its own, and reads others'.

The leader reads those of all shards, a shard the one of the leader. What is read is taken in by the loop when it asks
(`refresh`), so that a round rests on one moment. Source: design#shards; ADR 22.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.adapters.clock import Clock, within
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited, contained, fault_fields
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.daemon.shards.accounts import account_of_leader, account_of_shard, others_of
from reconciler.daemon.shards.own_object import CONFIG_MAP, OwnObject
from reconciler.daemon.vitals.board import Board, Shown
from reconciler.daemon.vitals.logs import Transitions
from reconciler.errors import MemberClusterError, ObjectNotFound
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.rollouts.told import NO_ROLLOUTS, NOTHING_TOLD, RolloutAccount, ToldRollouts
from reconciler.stages.deletion import NOBODY, Others
from reconciler.stages.observations import put_together
from reconciler.stages.shards import Account, AccountTooLarge, account_body, account_name, read_account

log = logging.getLogger("reconciler")

_EVERY_S: Final = 1.0
"""How often an account is written, where it is another one, and those of others are read."""
_CHECKED_EVERY: Final = 10
"""Once in so many times it is looked whether what was written is still there: a hand may have changed it."""


class Exchange:
    """The accounts as far as this process has them. What it tells is made when it is told."""

    look_s = _EVERY_S

    def __init__(
        self,
        member: MemberCluster,
        fleet: str,
        shard: str,
        shards: Iterable[str],
        may_write: Callable[[], bool],
        is_led: Callable[[str], Awaitable[bool]],
    ) -> None:
        """Nothing is read yet. `shard`: of this process; empty: it leads. `shards`: all of the fleet.

        `is_led`: whether somebody may apply to a shard now.
        """
        self._member = member
        self._fleet = fleet
        self._shard = shard
        self._shards = tuple(shards)
        self._may_write = may_write
        self._is_led = is_led
        self._object = OwnObject(member, fleet)
        self._written: Account | None = None
        self._looks = 0
        self._found: dict[str, Account] = {}
        self._versions: dict[str, str] = {}
        self._taken: dict[str, Account] = {}
        self._has_news = False
        self._before: Shown | None = None
        """What was shown when the loop began: it may be of another shard."""
        self._sight: Mapping[str, ClusterObservation] = {}
        self._rollouts = NO_ROLLOUTS
        """What this process has to tell of Rollouts."""
        self._left: RolloutAccount | None = None
        """What the last leader told of them, or this one; None: it is not known."""
        self._unled: frozenset[str] = frozenset()
        self.rollouts = NOTHING_TOLD
        """What the others told of Rollouts, as it was taken in last."""
        self._told = Transitions(log)
        self.fault = ""
        """Why accounts cannot be read; empty: they can."""

    @property
    def is_complete(self) -> bool:
        """Whether everybody has told something once, and it is known what the last leader told."""
        return self._found.keys() >= set(self._sources) and (bool(self._shard) or self._left is not None)

    @property
    def awaited(self) -> list[str]:
        """Shards of which nothing was ever told."""
        return sorted(set(self._sources) - self._found.keys())

    @property
    def accounts(self) -> Mapping[str, Account]:
        """What the others told last, by shard; of the leader under the empty name."""
        return self._found

    # What the loop takes in

    @property
    def observations(self) -> Observations | None:
        """What the others told, as it was taken in last; None: nothing yet."""
        if not self._taken:
            return None
        return put_together(account.observations for _, account in sorted(self._taken.items()))

    @property
    def revision(self) -> str | None:
        """By which the leader decided; None: this process is the leader."""
        if not self._shard:
            return None
        leader = self._taken.get("")
        return leader.revision if leader is not None else ""

    def refresh(self) -> bool:
        """Take in what was read since; whether it is anything else."""
        has_news, self._has_news = self._has_news, False
        self._taken = dict(self._found)
        self._take_in_rollouts()
        return has_news

    def _take_in_rollouts(self) -> None:
        """The same value as before where nothing else was told: who judges by it compares it with the last one."""
        told = {name: account.rollouts for name, account in self._taken.items()}
        before, left = self.rollouts, self._left or NO_ROLLOUTS
        is_same = told.keys() == before.accounts.keys() and all(told[name] is before.accounts[name] for name in told)
        if not is_same or left is not before.left or self._unled != before.unled:
            self.rollouts = ToldRollouts(accounts=told, unled=self._unled, left=left)

    def others(self, revision: str) -> Others:
        """What the guards count of the other shards, by this revision; the leader deletes nothing."""
        if not self._shard:
            return NOBODY
        return others_of(self._taken.get(""), self._shard, self._shards, revision)

    def note(self, seen: Observations, *, is_all: bool) -> None:
        """What this process saw of its own clusters. `is_all`: of all of them."""
        self._sight = {**({} if is_all else self._sight), **seen.clusters}

    def note_rollouts(self, account: RolloutAccount) -> None:
        """What this process has to tell of Rollouts."""
        self._rollouts = account

    # What goes on beside the loop

    async def keep(self, board: Board, journal: Journal, clock: Clock, *, stirred: Callable[[], None]) -> None:
        """Write what this process has to tell and read what others tell, until cancelled.

        `stirred` is called when the leader's orders are others than before.
        """
        self._before = board.shown
        while True:
            read = await awaited(self.read(journal, stirred))
            self._tell_fault("orders", read.fault, "the leader's orders cannot be taken in")
            written = await awaited(self._tell(board, journal))
            self._tell_fault("account", written.fault, "what this process sees cannot be told to the others")
            await clock.sleep(_EVERY_S)

    async def read(self, journal: Journal, stirred: Callable[[], None] = lambda: None) -> None:
        """Read what others tell; one that cannot be read is as it was."""
        if not self._shard and self._left is None:
            await awaited(within(self._read_left(), PROMPT_S))
        found = await asyncio.gather(*(awaited(within(self._read(name), PROMPT_S)) for name in self._sources))
        await self._look_who_is_led()
        fault = next((each.fault for each in found if each.fault is not None), None)
        self.fault = "" if fault is None else f"{self._member.name}: {str(fault) or 'no answer in time'}"
        self._tell_fault("accounts", fault, "what other processes tell cannot be read")
        leader = self._found.get("")
        if self._shard and leader is not None and journal.take_suspensions(leader.orders):
            stirred()

    @property
    def _sources(self) -> tuple[str, ...]:
        return ("",) if self._shard else self._shards

    async def told_before(self) -> Account | None:
        """What a process in the place of this one told last; None: nothing that can be read.

        Raises:
            MemberClusterError: the cluster of the Leases cannot be asked.
        """
        try:
            live = await self._member.get(CONFIG_MAP, NAMESPACE, account_name(self._fleet, self._shard))
        except ObjectNotFound:
            return None
        return contained(lambda: read_account(live.body)).value

    async def _read(self, name: str) -> None:
        try:
            live = await self._member.get(CONFIG_MAP, NAMESPACE, account_name(self._fleet, name))
        except ObjectNotFound:
            return
        if live.resource_version == self._versions.get(name):
            return
        account = await asyncio.to_thread(read_account, live.body)
        self._versions[name] = live.resource_version  # Not before: where that took too long, it is read again.
        if account is not None:
            before, self._found[name] = self._found.get(name), account
            self._has_news |= before is None or _basis(before) != _basis(account)

    async def _read_left(self) -> None:
        """What the last leader told of Rollouts: its word is what shards may be acting by."""
        account = await self.told_before()
        self._left = account.rollouts if account is not None else NO_ROLLOUTS

    async def _look_who_is_led(self) -> None:
        """Shards to which nobody applies; looked up where it decides anything, and in doubt as it was."""
        if self._shard or not self._rollouts.progress:
            return
        told = await asyncio.gather(*(awaited(within(self._is_led(name), PROMPT_S)) for name in self._shards))
        found = zip(self._shards, told, strict=True)
        unled = {name for name, each in found if each.value is False or (each.value is None and name in self._unled)}
        self._unled = frozenset(unled)

    async def _tell(self, board: Board, journal: Journal) -> None:
        shown = board.shown
        if shown is None or shown is self._before or not self._may_write():
            return
        if self._shard:
            leader = self._found.get("")
            asked = leader.asks if leader is not None else ()
            account = account_of_shard(self._shard, shown, self._sight, journal, asked)
        else:
            account = account_of_leader(shown, journal, [found for _, found in sorted(self._found.items())])
        account = replace(account, rollouts=self._rollouts)
        self._looks += 1
        if (
            account == self._written
            and self._looks % _CHECKED_EVERY == 0
            and await within(self._object.is_spoiled(account_name(self._fleet, self._shard)), PROMPT_S)
        ):
            self._written = None  # Who begins to read now needs it.
        if account != self._written:
            self._left = account.rollouts
            await within(self._write(account), PROMPT_S)
            self._written = account

    async def _write(self, account: Account) -> None:
        name = account_name(self._fleet, self._shard)
        await self._object.write(name, await asyncio.to_thread(account_body, name, NAMESPACE, account))

    def _tell_fault(self, subject: str, fault: Exception | None, text: str) -> None:
        if fault is None:
            self._told.leave(subject, "accounts go to and fro again", event="AccountsExchanged")
            return
        is_told = isinstance(fault, (MemberClusterError, TimeoutError, AccountTooLarge))
        why = str(fault) or "no answer in time"
        extra = {"event": "AccountsFailed", "cluster": self._member.name, **({} if is_told else fault_fields())}
        self._told.enter(subject, why, logging.WARNING, text, **extra, error=why)


def _basis(account: Account) -> tuple[object, ...]:
    """What of an account decides anything for who reads it; the rest is passed on, or shown."""
    of_leader = () if account.shard else (account.revision, account.guarded)
    return (account.observations, *of_leader)
