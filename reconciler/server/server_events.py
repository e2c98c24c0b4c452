"""`/api/v1/events`: server-sent events about new state, and nothing else."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Final

from aiohttp import web

from reconciler.controller.vitals.board import StatusStore
from reconciler.server.routes import HEADERS, fault

LISTENERS_MAX: Final = 64
BEAT_S: Final = 15.0
"""Interval of comments that show a living connection without events."""


class Events:
    """Those who listen. Source: HTML Living Standard, "Server-sent events"."""

    def __init__(self, board: StatusStore, *, beat_s: float = BEAT_S) -> None:
        """Nobody listens yet."""
        self._board, self._beat_s = board, beat_s
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
        told = self._board.moment
        await answer.write(self._message())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            while not stopped.done():
                changed = asyncio.create_task(self._board.changed(told))
                try:
                    await asyncio.wait((changed, stopped), timeout=self._beat_s, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if stopped.done():
                    return
                if self._board.moment == told:
                    await answer.write(b": alive\n\n")
                    continue
                told = self._board.moment
                await answer.write(self._message())
        finally:
            stopped.cancel()

    def _message(self) -> bytes:
        shown = self._board.shown
        data = {"round": shown.picture.number if shown else 0, "time": shown.picture.time if shown else None}
        return f"event: round\nid: {self._board.moment}\ndata: {json.dumps(data)}\n\n".encode()
