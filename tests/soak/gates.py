"""A way of its own from each process to each cluster: it can be cut for one alone, and tells whose request it is."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from reconciler.sim import write_kubeconfig

_AGENT = b"User-Agent: fleet-reconciler"


class Gates:
    """Proxies in a thread of their own. What passes says in its User-Agent which process sent it."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Nothing listens yet. `urls`: of the clusters by name."""
        self._urls = dict(urls)
        self._cut: set[tuple[str, str]] = set()
        self._open: dict[tuple[str, str], set[asyncio.StreamWriter]] = {}
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gates", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, process: str, path: Path) -> Path:
        """The kubeconfig of a process, whose ways lead through here."""
        path.parent.mkdir(parents=True, exist_ok=True)
        ports = asyncio.run_coroutine_threadsafe(self._listen(process), self._loop).result()
        write_kubeconfig(path, {name: f"http://127.0.0.1:{port}" for name, port in ports.items()})
        return path

    def cut(self, process: str, cluster: str) -> None:
        """Break what is open, and let nothing pass any more."""

        def close() -> None:
            self._cut.add((process, cluster))
            for writer in self._open.pop((process, cluster), set()):
                writer.close()

        self._loop.call_soon_threadsafe(close)

    def heal(self) -> None:
        """Let everything pass."""
        self._loop.call_soon_threadsafe(self._cut.clear)

    async def _listen(self, process: str) -> dict[str, int]:
        ports = {}
        for cluster in self._urls:

            async def pass_on(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cluster: str = cluster
            ) -> None:
                await self._pass(process, cluster, reader, writer)

            server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
            self._servers.append(server)
            ports[cluster] = server.sockets[0].getsockname()[1]
        return ports

    async def _pass(
        self, process: str, cluster: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        way = (process, cluster)
        if way in self._cut:
            writer.close()
            return
        url = urlsplit(self._urls[cluster])
        try:
            there, sent = await asyncio.open_connection(url.hostname, url.port)
        except OSError:
            writer.close()
            return
        self._open.setdefault(way, set()).update((writer, sent))
        name = b"User-Agent: " + process.encode() + b"/fleet-reconciler"
        try:
            await asyncio.gather(_copy(reader, sent, name), _copy(there, writer, b""))
        finally:
            for each in (writer, sent):
                each.close()
                self._open.get(way, set()).discard(each)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for writers in self._open.values():
            for writer in writers:
                writer.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: bytes) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data.replace(_AGENT, name) if name else data)
            await writer.drain()
    writer.close()
