"""Which Leases a process asks for: that of the fleet, or of whichever shard has nobody first.

A process that applies to any shard asks for one after the other, in an order of its own, so that each shard soon has
one; whoever finds all taken stands by for all of them. Source: design#shards; ADR 22.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from reconciler.adapters.clock import Clock
from reconciler.daemon.leadership.elector import Elector

_NEXT_S: Final = 1.0
"""So long a process waits with the next shard that it would take as well."""


class Candidacy:
    """Leases of which one is wanted. `won`: the one that was got first; None: none yet."""

    def __init__(self, electors: Mapping[str, Elector], clock: Clock) -> None:
        """Nothing is asked yet. `electors`: by the shard whose Lease it is, in the order of preference."""
        self.won: Elector | None = None
        self._electors = list(electors.values())
        self._clock = clock

    @property
    def duration_s(self) -> int:
        """How long a Lease holds without being renewed."""
        return self._electors[0].duration_s

    @property
    def holder(self) -> str:
        """Who held the Leases when they were seen last; empty: nobody."""
        found = [(elector.shard, elector.holder) for elector in self._electors if elector.holder]
        if len(self._electors) == 1:
            return found[0][1] if found else ""
        return ", ".join(f"{holder} (shard {shard})" for shard, holder in sorted(found))

    async def campaign(self) -> None:
        """Wait until one of the Leases is held; others that were got in the same moment are given back."""
        tasks = [asyncio.create_task(self._one(place, elector)) for place, elector in enumerate(self._electors)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.won = next(elector for elector in self._electors if elector.term is not None)
        for elector in self._electors:
            if elector is not self.won:
                await elector.give_back()

    async def _one(self, place: int, elector: Elector) -> None:
        await self._clock.sleep(place * _NEXT_S)
        await elector.campaign()

    async def give_back(self) -> None:
        """Let others have what is held. Only after `campaign` has ended."""
        for elector in self._electors:
            await elector.give_back()
