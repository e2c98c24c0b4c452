"""What a process that stands by shows of a fleet with shards: where everything belongs, and what the shards tell.

It decides from the commit, and from the observations by which the leader decided, as each shard does. Nothing rests on
it. Source: ADR 22.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from reconciler.adapters.clock import Clock, within
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited, fault_fields
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.daemon.shards.pictures import EVERY_S, Pictures
from reconciler.daemon.vitals.board import Board, Shown
from reconciler.daemon.vitals.logs import Transitions
from reconciler.engine import Round, decide
from reconciler.errors import ObjectNotFound
from reconciler.interpreters.registry import Registry
from reconciler.model.fleet import Fleet
from reconciler.model.plan import Plan
from reconciler.model.refs import GVK
from reconciler.report.status.state_document import Picture
from reconciler.stages.decision import DecisionTables
from reconciler.stages.shards import Account, account_name, read_account
from reconciler.stages.state import Facts, StateTables

log = logging.getLogger("reconciler")

_CONFIG_MAP: Final = GVK("", "v1", "ConfigMap")


class Onlooking(Struct, frozen=True, kw_only=True):
    """What is looked on with. `member`: the cluster of the Leases; `source`: how the store is named."""

    member: MemberCluster
    interpreters: Registry
    board: Board
    journal: Journal
    clock: Clock
    source: str


class Onlooker:
    """Remembers by what it decided last, so that a fleet at rest costs nothing."""

    def __init__(self, with_: Onlooking, pictures: Pictures) -> None:
        """Nothing is decided yet."""
        self._with, self._pictures = with_, pictures
        self._made_of: tuple[Fleet, Account | None] | None = None
        self._version = ""
        self._account: Account | None = None
        self._tables = DecisionTables()
        self._told = Transitions(log)

    async def keep(self, fleet: Callable[[], Fleet]) -> None:
        """Show the fleet, until cancelled. `fleet`: the one that is in force now."""
        while True:
            looked = await awaited(self._look(fleet()))
            if looked.fault is None:
                self._told.leave("onlooking", "the fleet is shown again", event="OnlookingResumed")
            else:
                text = "what the shards tell cannot be shown while this process stands by"
                self._told.fault("onlooking", looked.fault, text, **fault_fields())
            await self._with.clock.sleep(EVERY_S)

    async def _look(self, fleet: Fleet) -> None:
        given = self._with
        # What cannot be read is as it was; what the shards tell says so by its age.
        await awaited(within(self._read_leader(fleet), PROMPT_S))
        made_of = (fleet, self._account)
        if self._made_of is None or not _is_same(self._made_of, made_of):
            now = given.clock.now()
            given.board.show(await asyncio.to_thread(self._shown, fleet, now))
            self._made_of = made_of
        given.board.take_in(await self._pictures.read(given.clock.now()))
        shown = given.board.shown
        if shown is not None:
            await self._pictures.record(given.board, given.journal, base=shown.picture)

    async def _read_leader(self, fleet: Fleet) -> None:
        try:
            live = await self._with.member.get(_CONFIG_MAP, NAMESPACE, account_name(fleet.settings.name))
        except ObjectNotFound:
            return
        if live.resource_version != self._version:
            self._account = await asyncio.to_thread(read_account, live.body)
            self._version = live.resource_version  # Not before: where that took too long, it is read again.

    def _shown(self, fleet: Fleet, now: str) -> Shown:
        account = self._account or Account()
        observations = account.observations
        interpreters = self._with.interpreters
        tables, self._tables = self._tables, DecisionTables()  # What is broken off leaves them half made.
        decision = decide(fleet, observations, now, interpreters=interpreters, tables=tables)
        self._tables = tables
        plan = Plan(base="", head=fleet.revision, problems=decision.problems)
        facts = Facts(decision=decision, manifests={}, members={}, elsewhere=frozenset(fleet.clusters))
        picture = Picture(
            round=Round(decision=decision, manifests={}, plan=plan),
            state=StateTables().update(facts),
            time=now,
            source=self._with.source,
            rollouts=tuple(found for _, found in sorted(account.rollouts.progress.items())),
        )
        return Shown(picture=picture, observations=observations, since=now)


def _is_same(before: tuple[Fleet, Account | None], now: tuple[Fleet, Account | None]) -> bool:
    """Whether nothing would be decided otherwise; how full clusters are is another thing each time."""
    old, new = before[1], now[1]
    if before[0] is not now[0] or old is None or new is None:
        return before[0] is now[0] and old is new
    return old is new or (
        old.observations.previous == new.observations.previous
        and old.observations.constraints == new.observations.constraints
        and old.rollouts.progress == new.rollouts.progress
    )
