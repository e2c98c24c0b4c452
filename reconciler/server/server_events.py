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
from reconciler.server.limits import ReaderLimits, Slots, keep_buffer_small
from reconciler.server.routes import HEADERS, fault

BEAT_S: Final = 15.0
"""Interval of comments that show a living connection without events."""


class Events:
    """Those who listen. Source: HTML Living Standard, "Server-sent events"."""

    def __init__(self, status: StatusStore, limits: ReaderLimits, *, beat_s: float = BEAT_S) -> None:
        self._status, self._limits, self._beat_s = status, limits, beat_s
        self._stopped = asyncio.Event()
        self.slots = Slots("streams", limits.streams, limits.streams_of_one)

    def stop(self) -> None:
        """End all streams now, and begin none."""
        self._stopped.set()

    async def stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send `event: round` with the round and its time: at once, and at each change of the view."""
        if self._stopped.is_set():
            return fault(HTTPStatus.SERVICE_UNAVAILABLE, "nobody more can listen now", "ask again in a moment")
        headers = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        answer = web.StreamResponse(headers=headers)
        answer.force_close()
        if request.method == "HEAD":
            await answer.prepare(request)
            return answer
        keep_buffer_small(request.transport)
        # A reader that went, or takes nothing any more.
        with suppress(ConnectionResetError, TimeoutError):
            async with asyncio.timeout(self._limits.stream_s):
                await answer.prepare(request)
                await self._tell(answer)
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
