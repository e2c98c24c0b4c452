"""The Prometheus that gates ask: its address and token are the operator's, and never the store's.

One request is bounded in time and size, and follows no redirect: whoever answers may lie, be slow or be away.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import Struct

from reconciler.api.rollout_progress import Sight, Unmet, Unseen
from reconciler.api.rollouts import MetricCheck
from reconciler.clock import epoch_s
from reconciler.containment import try_call
from reconciler.controller import timing
from reconciler.rollouts import ANSWER_BYTES_MAX, range_query, refusal, verdict_on
from reconciler.secret_files import token_in

if TYPE_CHECKING:
    from reconciler.notify.post import Poster

_AT_ONCE: Final = 4


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

    async def verdict(self, checks: tuple[MetricCheck, ...], cluster: str, begun_at: str, now: str) -> Sight | None:
        """Return why one of the metrics does not hold for a cluster since its release began; None: all do.

        `begun_at`, `now`: RFC 3339.
        """
        try:
            async with asyncio.timeout(timing.PATIENCE_S):
                found = await asyncio.gather(*(self._ask(check, cluster, begun_at, now) for check in checks))
        except TimeoutError:
            return Unseen(f"the Prometheus {self.name} gives no answer within {timing.PATIENCE_S:g} s")
        return next((each for each in found if each is not None), None)

    async def _ask(self, check: MetricCheck, cluster: str, begun_at: str, now: str) -> Sight | None:
        now_s = int(epoch_s(now))
        if now_s - epoch_s(begun_at) < check.for_s:
            return Unmet(f"a query is asked {check.for_s}s after its beginning")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self._address.token is not None:
            token = try_call(token_in, self._address.token, "--prometheus-token-file")
            if token.value is None:
                return Unseen(f"the token of the Prometheus {self.name} cannot be read")
            headers["Authorization"] = f"Bearer {token.value}"
        url = f"{self._address.url.rstrip('/')}/api/v1/query_range"
        body = urlencode(range_query(check, cluster, now_s)).encode()
        async with self._free:
            reply = await self._poster.post(url, headers, body, answer_max_bytes=ANSWER_BYTES_MAX + 1)
        if not reply.is_taken:
            return Unseen(f"the Prometheus {self.name} cannot be asked: {reply.why}{refusal(reply.body)}")
        if len(reply.body) > ANSWER_BYTES_MAX:
            return Unseen(f"the Prometheus {self.name} answers with more than {ANSWER_BYTES_MAX >> 20} MiB")
        return verdict_on(check, reply.body, self.name, now_s)


def no_prometheus(named: str) -> Unseen:
    """Return why there is none to ask. `named`: by the Fleet document."""
    if not named:
        return Unseen("the Fleet document names no Prometheus (spec.prometheus)")
    return Unseen(f"this process knows no Prometheus {named}; start the service with --prometheus {named}=URL")
