"""One seeded trial of a copied journal: the service goes on after the copy was made, and the copy knows nothing of it.

A second service starts with the copy, beside the first or after its end. The marks in the clusters tell that it is not
the last one, so it must write nothing, until the fleet is taken over with the copy, as its message says. From then on
it must bring the fleet to rest: what it does not know of it finds by the marks of the objects.
"""

from __future__ import annotations

import asyncio
import shutil
import time

from reconciler.controller.once import Access
from reconciler.controller.once.applying import rebuild_once
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.kinds import BUILT_IN_KINDS
from tests.fakes.clocks import SPEED, QuickClock
from tests.soak.apps import CLUSTERS
from tests.soak.chaos import REST_TIMEOUT_S, RESYNC_S, Trial
from tests.soak.services import service_on

HELD_ELSEWHERE = "fleet-held-elsewhere"


class CopiedJournalTrial(Trial):
    """One seed. Which of the cases it is, and what happens in it, follows from the seed."""

    async def run(self) -> int:
        """Go through everything; how many copies the second service had to leave as they were not to be.

        Raises:
            AssertionError: the second service wrote, the fleet did not come to rest, or an invariant was broken.
        """
        copy = self.folder / "copied" / "journal.db"
        async with self._watched():
            async with self._daemon():
                await self._rest("at the beginning")
            copy.parent.mkdir()
            for file in self.folder.glob("journal.db*"):
                shutil.copy2(file, copy.parent / file.name)
            async with self._daemon():
                for _ in range(self.rng.randint(1, 3)):
                    await self._trouble()
                self._clear()
                await self._rest("after the copy was made")
                if self.rng.random() < 0.5:
                    await self._is_refused("beside the first service")
                    await self._last_commit()
            left = await self._is_refused("after the first service")
            await self._take_over()
            self.journal_path = copy
            async with self._daemon():
                await self._trouble()
                await self._settle("with the copy")
        return left

    async def _is_refused(self, when: str) -> int:
        """A service with the copy writes nothing, whatever the store says. How much was left to be done at its end."""
        copy, vitals, source = self.folder / "copied" / "journal.db", Vitals(), self.source.twin()
        # The first service is at rest: what is written now, the second one writes.
        before = await self._silence()
        is_alone = self.service.task.done()
        async with service_on(self.box, copy, source, vitals) as running:
            deadline = time.monotonic() + REST_TIMEOUT_S
            while {found.cluster for found in vitals.snapshot.problems if found.code == HELD_ELSEWHERE} != set(
                CLUSTERS
            ):
                assert not running.task.done(), f"{when}: the second service ended: {running}"
                assert time.monotonic() < deadline, f"{when}: the copy is not told: {vitals.snapshot.problems}"
                await asyncio.sleep(0.02)
            if is_alone:
                for _ in range(self.rng.randint(1, 3)):
                    self._commit()
                    source.put(self.source.files)
                    self._edit_by_hand(self.rng.choice(CLUSTERS))
                    await asyncio.sleep(self.rng.uniform(0.05, 0.3))
            await asyncio.sleep(RESYNC_S / SPEED * 1.2)
            assert self._ours() == before, "\n".join([f"{when}: it wrote", *self._last_writes()])
        return len(self._wrong())

    async def _silence(self) -> int:
        """Return how much was written, once no more is."""
        before = -1
        while (now := self._ours()) != before:
            before = now
            await asyncio.sleep(0.5)
        return before

    async def _take_over(self) -> None:
        snapshot = await self.source.twin().read()
        assert snapshot is not None
        fleet = StoreInForce({}, self.source).parse(snapshot)
        access = Access(
            interpreters=BUILT_IN_KINDS,
            kubeconfig=self.box.kubeconfig,
            journal=self.folder / "copied" / "journal.db",
            clock=QuickClock(),
        )
        rebuilt = await rebuild_once(fleet, access, take_over=True)
        assert (rebuilt.failed, rebuilt.held_by) == ({}, {})
