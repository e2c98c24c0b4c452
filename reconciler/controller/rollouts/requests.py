"""Requests for Rollouts: beginnings written into clusters, and metrics asked of a Prometheus.

Beginnings are written concurrently; a late answer is handled beside the rounds (ADR 14). The address and token of the
Prometheus are the operator's, never the store's. A request is bounded in time and size, and follows no redirect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Struct

from reconciler.api.rollout_progress import GateStatus, GateUnknown, GateUnmet, Record
from reconciler.api.rollouts import MetricCheck
from reconciler.clock import Clock, epoch_s
from reconciler.containment import try_call
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox, RolloutEntered
from reconciler.controller.tasks import WorkQueue, end_tasks, start
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.rollouts import ANSWER_BYTES_MAX, range_query, refusal, verdict_on
from reconciler.secret_files import token_in

if TYPE_CHECKING:
    from reconciler.notify.post import Poster


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

    def not_ready(self) -> dict[str, str]:
        """Clusters that cannot be begun now, and why: they have not answered yet, or could not be written to."""
        for name in self.queue.due():
            self.queue.take(name)  # It may be tried; how often it was is kept.
        refused = {name: why for name, why in self._refused.items() if self.queue.is_waiting(name)}
        return refused | {name: "it does not answer" for name, (_, task) in self._tasks.items() if not task.done()}

    async def enter(
        self, fleet: str, members: Mapping[str, MemberCluster], begun: Mapping[str, Begun]
    ) -> dict[str, Begun]:
        """Return the written beginnings by cluster; the rest is asked for again.

        Raises FleetHeld: another journal holds the fleet.
        """
        for name, records in begun.items():
            if name in members and not self._is_under_way(name, records):
                entering = self._enter(members[name], fleet, records)
                answered = partial(self._inbox.send, RolloutEntered(name))
                self._tasks[name] = (records, start(entering, f"entering {name}", answered))
        due = {name: self._tasks[name] for name in begun if name in self._tasks}
        if due:
            await asyncio.wait([task for _, task in due.values()], timeout=self._within_s)
        entered = {}
        for name, (records, task) in due.items():
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
        await end_tasks(task for _, task in self._tasks.values())
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


_AT_ONCE: Final = 4
"""So many questions to a Prometheus are open side by side."""


class PrometheusAddress(Struct, frozen=True, kw_only=True):
    """`name`: as the Fleet document names it. `token`: the file with a bearer token; None: it asks for none."""

    name: str
    url: str
    token: Path | None = None


class Prometheus:
    """Asks over one session, a few questions at once."""

    def __init__(self, address: PrometheusAddress, poster: Poster) -> None:
        self.name = address.name
        self._address = address
        self._poster = poster
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def verdict(
        self, checks: tuple[MetricCheck, ...], cluster: str, begun_at: str, now: str
    ) -> GateStatus | None:
        """Return why a metric does not hold for a cluster since its release began (RFC 3339); None: all do."""
        try:
            async with asyncio.timeout(timing.PATIENCE_S):
                statuses = await asyncio.gather(*(self._ask(check, cluster, begun_at, now) for check in checks))
        except TimeoutError:
            return GateUnknown(f"the Prometheus {self.name} gives no answer within {timing.PATIENCE_S:g} s")
        return next((each for each in statuses if each is not None), None)

    async def _ask(self, check: MetricCheck, cluster: str, begun_at: str, now: str) -> GateStatus | None:
        now_s = int(epoch_s(now))
        if now_s - epoch_s(begun_at) < check.for_s:
            return GateUnmet(f"a query is asked {check.for_s}s after its beginning")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._address.token is not None:
            token = try_call(token_in, self._address.token, "--prometheus-token-file")
            if token.value is None:
                return GateUnknown(f"the token of the Prometheus {self.name} cannot be read")
            headers["Authorization"] = f"Bearer {token.value}"
        url = f"{self._address.url.rstrip('/')}/api/v1/query_range"
        body = urlencode(range_query(check, cluster, now_s)).encode()
        async with self._free:
            reply = await self._poster.post(url, headers, body, answer_max_bytes=ANSWER_BYTES_MAX + 1)
        if not reply.is_taken:
            return GateUnknown(f"the Prometheus {self.name} cannot be asked: {reply.why}{refusal(reply.body)}")
        if len(reply.body) > ANSWER_BYTES_MAX:
            return GateUnknown(f"the Prometheus {self.name} answers with more than {ANSWER_BYTES_MAX >> 20} MiB")
        return verdict_on(check, reply.body, self.name, now_s)


def no_prometheus(named: str) -> GateUnknown:
    """Return why there is none to ask. `named`: by the Fleet document."""
    if not named:
        return GateUnknown("the Fleet document names no Prometheus (spec.prometheus)")
    return GateUnknown(f"this process knows no Prometheus {named}; start the service with --prometheus {named}=URL")
