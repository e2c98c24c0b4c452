"""Beginnings are written into clusters concurrently, and no cluster waits for a slow one.

Source: ADR 14, as for all requests to clusters: a late answer is handled beside the rounds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial

from reconciler.api.rollout_progress import Record
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox, RolloutEntered
from reconciler.controller.tasks import WorkQueue, ended, start
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster

log = logging.getLogger("reconciler")

Begun = Mapping[str, Record]
"""The beginning in a cluster, by Rollout."""
Enter = Callable[[MemberCluster, str, Begun], Coroutine[None, None, MemberClusterError | None]]
"""Writes into a cluster of a fleet what begins there; why it could not, None: it is there."""


class Entering:
    """Running writes, and the clusters where the last one failed."""

    def __init__(self, enter: Enter, clock: Clock, within_s: float, inbox: Inbox) -> None:
        """`within_s`: the time to wait for the answers. `inbox`: is sent each, also a late one."""
        self._enter = enter
        self._within_s = within_s
        self._inbox = inbox
        self._tasks: dict[str, tuple[Begun, asyncio.Task[MemberClusterError | None]]] = {}
        self._refused: dict[str, str] = {}
        """The reason of a cluster's last refusal."""
        self.queue = WorkQueue[str](timing.QUESTION_BACK_OFF, clock)
        """The clusters to ask again."""

    @property
    def has_ended(self) -> bool:
        """Return whether a late answer is there."""
        return any(task.done() for _, task in self._tasks.values())

    def away(self) -> dict[str, str]:
        """Clusters that cannot be begun now, and why: they have not answered yet, or could not be written to."""
        for name in self.queue.due():
            self.queue.take(name)  # It may be tried; how often it was is kept.
        found = {name: why for name, why in self._refused.items() if self.queue.is_waiting(name)}
        return found | {name: "it does not answer" for name, (_, task) in self._tasks.items() if not task.done()}

    async def enter(
        self, fleet: str, members: Mapping[str, MemberCluster], begun: Mapping[str, Begun]
    ) -> dict[str, Begun]:
        """Return the written beginnings by cluster; the rest is asked for again.

        Raises:
            FleetHeld: another journal holds the fleet.
        """
        for name, records in begun.items():
            if name in members and not self._is_under_way(name, records):
                entering = self._enter(members[name], fleet, records)
                answered = partial(self._inbox.send, RolloutEntered(name))
                self._tasks[name] = (records, start(entering, f"entering {name}", answered))
        asked = {name: self._tasks[name] for name in begun if name in self._tasks}
        if asked:
            await asyncio.wait([task for _, task in asked.values()], timeout=self._within_s)
        entered = {}
        for name, (records, task) in asked.items():
            if task.done():
                del self._tasks[name]
                if self._is_entered(name, task.result()) and _revisions(records) == _revisions(begun[name]):
                    entered[name] = records
        return entered

    def drop_ended(self) -> None:
        """Drop unused answers: a beginning that was superseded, or a mark that lagged behind."""
        for name in [name for name, (_, task) in self._tasks.items() if task.done()]:
            _, task = self._tasks.pop(name)
            self._is_entered(name, task.result())

    async def close(self) -> None:
        """Wait for nobody any more."""
        await ended(task for _, task in self._tasks.values())
        self._tasks.clear()

    def _is_under_way(self, name: str, records: Begun) -> bool:
        """Return whether the same is being written, or something else with an earlier answer."""
        if name not in self._tasks:
            return False
        before, task = self._tasks[name]
        return not task.done() or _revisions(before) == _revisions(records)

    def _is_entered(self, name: str, error: MemberClusterError | None) -> bool:
        before = self._refused.pop(name, None)
        if error is None:
            self.queue.forget(name)
            return True
        self._refused[name] = str(error)
        self.queue.requeue_rate_limited(name)
        if before != str(error):
            extra = {"event": "RolloutNotEntered", "cluster": name, "error": str(error)}
            log.warning("a revision cannot begin in the cluster; it is tried again", extra=extra)
        return False


def _revisions(begun: Begun) -> dict[str, str]:
    return {rollout: record.revision for rollout, record in begun.items()}
