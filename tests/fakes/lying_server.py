"""An API server that answers with mutations of what is true. Source: design#promise-7."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from reconciler.sim import Answer, Cluster, ClusterServer, FleetInABox, Request
from reconciler.sim.api.watches import Watch
from reconciler.sim.objects.status import Body
from tests.fakes.answer_mutations import mutated

Lie = Callable[[Request, Any], Any]
"""The answer to a request instead of the true JSON tree; bytes are sent as they are."""


class LyingServer(ClusterServer):
    """Serves a cluster; `lie` is asked about each answer, and each event of a watch. None: the truth."""

    def __init__(self, cluster: Cluster, port: int, speed: float | None) -> None:
        super().__init__(cluster, speed=speed)
        self.port = port
        self.lie: Lie | None = None
        self.asked: list[Request] = []

    def _answered(self, request: Request) -> Answer:
        self.asked.append(request)
        answer = super()._answered(request)
        if self.lie is None:
            return answer
        if answer.watch is not None:
            return Answer(status=answer.status, watch=_LyingWatch(answer.watch, request, self.lie))
        told = self.lie(request, answer.body)
        # The standard library writes deeper trees than orjson does.
        text = told.decode() if isinstance(told, bytes) else json.dumps(told)
        return Answer(status=answer.status, text=text, content_type="application/json; charset=utf-8")


class _LyingWatch(Watch):
    """A watch whose events are mutated."""

    def __init__(self, watch: Watch, request: Request, lie: Lie) -> None:
        self.__dict__ |= watch.__dict__
        self._request, self._lie = request, lie

    def poll(self) -> list[Body]:
        return [self._lie(self._request, event) for event in super().poll()]


class Liar:
    """Lies with a seed: about each answer with the given chance."""

    def __init__(self, seed: int, chance: float = 0.3) -> None:
        self._rng = random.Random(seed)
        self._chance = chance
        self.told: list[str] = []

    def __call__(self, request: Request, body: Any) -> Any:
        if self._rng.random() >= self._chance:
            return body
        self.told.append(f"{request.method} {request.path}")
        found = mutated(body, self._rng)
        if self._rng.random() < 0.03:
            text = json.dumps(found)
            return text[: self._rng.randrange(len(text) + 1)].encode()
        return found


async def let_lie(box: FleetInABox, name: str) -> LyingServer:
    """Let another server answer for a cluster from now on, on the same port; honest until it is told a lie."""
    honest = box.servers[name]
    await honest.stop()
    server = LyingServer(box[name], honest.port, honest.speed)
    box.servers[name] = server
    await server.start()
    return server


def stale(request: Request, body: Any) -> Any:
    """Discovery as it is while the extension API server of example.com is down: a lie."""
    if request.path != "/apis":
        return body
    versions = [version for group in body["items"] if group["metadata"]["name"] == "example.com"
                for version in group["versions"]]  # fmt: skip
    for version in versions:
        version |= {"freshness": "Stale", "resources": []}
    return body
