"""A Git server over SSH on loopback: git's own upload-pack behind an SSH server, with keys and faults."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import asyncssh

from tests.fakes.git_server import ended, needed


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A private key, made as people make it; the public one is beside it."""
    command = [needed("ssh-keygen"), "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run([*command, *(("-b", "2048") if kind == "rsa" else ())], check=True, capture_output=True)
    return path


class SshServer:
    """Serves the repositories below a folder to whoever has one of the keys."""

    def __init__(self, root: Path, host_key: Path, *keys: Path) -> None:
        self.is_silent = False
        """True if no request is answered."""
        self.stops_after: int | None = None
        """The bytes of an answer that are sent before nothing more comes, of commands after the first."""
        self.complaint = ""
        """The words of the server instead of its service."""
        self.asked: list[str] = []
        """The commands of clients that were let in."""
        self.users: list[str] = []
        self._git = needed("git")
        self._root = root
        self._host_key = host_key
        self._clients = asyncssh.import_authorized_keys("".join(_public(key) for key in keys)) if keys else None
        self._handlers: set[asyncio.Task[Any]] = set()
        self._open = 0
        self._is_left = asyncio.Event()

    @property
    def url(self) -> str:
        return f"ssh://git@127.0.0.1:{self.port}"

    @property
    def known_hosts(self) -> str:
        return f"[127.0.0.1]:{self.port} {_public(self._host_key)}"

    async def left(self) -> None:
        """Return when no client is connected."""
        await self._is_left.wait()

    async def __aenter__(self) -> SshServer:
        server = self

        class Front(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                server._open += 1
                server._is_left.clear()

            def connection_lost(self, exc: Exception | None) -> None:
                server._open -= 1
                if not server._open:
                    server._is_left.set()

            def begin_auth(self, username: str) -> bool:
                server.users.append(username)
                return True

        self._listener = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Front,
            server_host_keys=[str(self._host_key)],
            authorized_client_keys=self._clients,
            process_factory=self._serve,
            encoding=None,
            allow_scp=False,
        )
        self.port = self._listener.get_port()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        self._listener.close()
        await self._listener.wait_closed()

    async def _serve(self, process: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        self.asked.append(process.command or "")
        if self.is_silent:
            await asyncio.Event().wait()
        if self.complaint:
            process.stderr.write(self.complaint.encode())
            process.exit(1)
            return
        program, path = shlex.split(process.command)
        assert program == "git-upload-pack"
        served = await asyncio.create_subprocess_exec(
            self._git, "upload-pack", f"{self._root}{path}",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        taking = asyncio.create_task(_pump(process.stdin, served.stdin, is_last=True))
        try:
            count = self.stops_after if len(self.asked) > 1 else None
            await asyncio.gather(_pump(served.stdout, process.stdout, count), _pump(served.stderr, process.stderr))
            process.exit(await served.wait())
        finally:
            taking.cancel()
            await ended(served)


async def _pump(source: Any, target: Any, count: int | None = None, *, is_last: bool = False) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(65536 if count is None else min(count, 65536)):
            target.write(data)
            await target.drain()
            if count is not None:
                count -= len(data)
            if count == 0:
                await asyncio.Event().wait()
        if is_last:
            target.write_eof()


def _public(key: Path) -> str:
    return Path(f"{key}.pub").read_text()
