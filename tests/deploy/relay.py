"""An API server behind an address of its own, whose certificate can be replaced by one of another authority."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from reconciler.sim import reserved_port


class Relay:
    """Speaks TLS on both sides and hands on what comes. Use as a context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self.port = reserved_port(self)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def serve(self, certificate: Path, key: Path) -> None:
        """Serve with this certificate from now on. Connections of before are cut off."""
        self._run(self._serve(certificate, key))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _serve(self, certificate: Path, key: Path) -> None:
        await self._stop()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = await asyncio.start_server(self._serves, "127.0.0.1", self.port, ssl=context)

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.transport.abort()
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        if pending:
            await asyncio.wait(pending, timeout=10)

    async def _serves(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        inner, outer = await asyncio.open_connection(*self._upstream, ssl=trusting)
        ends = {writer, outer}
        self._open |= ends
        try:
            await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))
        finally:
            self._open -= ends


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
