"""An HTTP server on loopback that answers as a script says, faults included, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any

from msgspec import Struct

from tests.fakes.virtual_time import leap

HANG = b"hang"
"""Never answer. With `patience_s` so much time leaps by as soon as the request is in: no asker waits in earnest, and
none gives up before on a busy machine."""
CUT = b"cut"
"""Close the connection without a word."""


class Asked(Struct, frozen=True):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def reply(status: int, body: Any = b"", promised: int | None = None, **headers: str) -> bytes:
    """A whole response. `promised` is a Content-Length that differs from the truth; then the connection is closed."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    length = len(data) if promised is None else promised
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if promised is not None:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def status(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return {**body, "message": message, "details": details}


class ScriptedServer:
    """Answers requests in the order of the script, whatever connection they come on; then with the last one again."""

    def __init__(self, *script: bytes, by_target: Callable[[Asked], bytes] | None = None) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.in_flight = 0
        self.in_flight_most = 0
        self.gate: asyncio.Event | None = None
        self.patience_s = 0.0
        self.half_open = 0
        """So many of the first connections are open on the client's side alone: nothing comes back on them."""
        self._script = list(script)
        self._by_target = by_target
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> ScriptedServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while await self._answer_one(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(method=method, target=target, headers=headers, body=body)
        self.asked.append(asked)
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight, self.in_flight_most)
        try:
            if self.gate is not None:
                await self.gate.wait()
            answer = self._next(asked) if number > self.half_open else HANG
            if answer == HANG:
                leap(self.patience_s)
                await asyncio.Event().wait()
            if answer == CUT:
                return False
            writer.write(answer)
            await writer.drain()
            return b"Connection: close" not in answer
        finally:
            self.in_flight -= 1

    def _next(self, asked: Asked) -> bytes:
        if self._by_target is not None:
            return self._by_target(asked)
        return self._script.pop(0) if len(self._script) > 1 else self._script[0]
