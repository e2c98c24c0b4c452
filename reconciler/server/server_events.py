"""`/api/v1/events`: server-sent events about new state, and nothing else."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from reconciler.controller.tasks import first_of
from reconciler.controller.vitals.status_store import StatusStore
from reconciler.server.routes import HEADERS, fault

LISTENERS_MAX: Final = 64
BEAT_S: Final = 15.0
"""Interval of comments that show a living connection without events."""


class Events:
    """Those who listen. Source: HTML Living Standard, "Server-sent events"."""

    def __init__(self, status: StatusStore, *, beat_s: float = BEAT_S) -> None:
        """Nobody listens yet."""
        self._status, self._beat_s = status, beat_s
        self._stopped = asyncio.Event()
        self._count = 0

    def stop(self) -> None:
        """End all streams now, and begin none."""
        self._stopped.set()

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send `event: round` with the round and its time: at once, and at each change of the view."""
        if self._stopped.is_set() or self._count >= LISTENERS_MAX:
            return fault(HTTPStatus.SERVICE_UNAVAILABLE, "nobody more can listen now", "ask again in a moment")
        headers = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        answer = web.StreamResponse(headers=headers)
        answer.force_close()
        if request.method == "HEAD":
            await answer.prepare(request)
            return answer
        self._count += 1
        try:
            await answer.prepare(request)
            await self._tell(answer)
        except ConnectionResetError:
            pass  # Whoever listened is gone.
        finally:
            self._count -= 1
        return answer

    async def _tell(self, answer: web.StreamResponse) -> None:
        told = self._status.moment
        await answer.write(self._message())
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._beat_s):
                    await first_of(self._status.changed(told), self._stopped.wait())
            if self._stopped.is_set():
                return
            is_new = self._status.moment != told
            told = self._status.moment
            await answer.write(self._message() if is_new else b": alive\n\n")

    def _message(self) -> bytes:
        picture = self._status.snapshot.picture
        data = {"round": picture.number if picture else 0, "time": picture.time if picture else None}
        return f"event: round\nid: {self._status.moment}\ndata: {json.dumps(data)}\n\n".encode()
