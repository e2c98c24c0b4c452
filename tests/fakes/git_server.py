"""A Git server on loopback: git's own HTTP backend behind a small gateway, with tokens, TLS and faults."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from types import TracebackType

import pytest
from aiohttp import web


def needed(program: str) -> str:
    """The path of a program. Without it a test skips; in CI it fails."""
    found = shutil.which(program)
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail(f"{program} is missing; CI runs every test", pytrace=False)
    pytest.skip(f"{program} is missing")


class GitServer:
    """Serves the repositories below a folder. `token`: what a client has to know; `status`: answer this instead."""

    def __init__(self, root: Path, *, token: str = "", certificate: tuple[Path, Path] | None = None) -> None:
        self.status = 0
        self.location = ""
        self.is_silent = False
        self.stops_after: int | None = None
        """The bytes of a pack that are sent before nothing more comes."""
        self.breaks_off = False
        """True if the connection ends then."""
        self.asked: list[tuple[str, str]] = []
        """Paths with what was sent to sign in."""
        self._git = needed("git")
        self._root = root
        self._token = token
        self._tls: ssl.SSLContext | None = None
        if certificate is not None:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(*certificate)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}"

    async def __aenter__(self) -> GitServer:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "")
        self.asked.append((request.path, sent))
        if self.is_silent:
            await asyncio.Event().wait()
        if self.status:
            headers = {"Location": self.location} if self.location else {}
            return web.Response(status=self.status, headers=headers, text="<html>\na page\n</html>\n")
        password = base64.b64decode(sent.removeprefix("Basic ")).decode().partition(":")[2] if sent else ""
        if self._token and password != self._token:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        answer = await self._backend(request)
        if self.stops_after is not None and request.method == "POST":
            await self._send_some(request, answer, self.stops_after)
        return answer

    async def _send_some(self, request: web.Request, answer: web.Response, count: int) -> None:
        assert isinstance(answer.body, bytes)
        begun = web.StreamResponse(headers={"Content-Type": answer.headers["Content-Type"]})
        await begun.prepare(request)
        await begun.write(answer.body[:count])
        if self.breaks_off:
            assert request.transport is not None
            request.transport.close()
        await asyncio.Event().wait()

    async def _backend(self, request: web.Request) -> web.Response:
        process = await asyncio.create_subprocess_exec(
            self._git,
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={
                "GIT_PROJECT_ROOT": str(self._root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH": os.environ["PATH"],
                "PATH_INFO": request.path,
                "QUERY_STRING": request.query_string,
                "REQUEST_METHOD": request.method,
                "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            },
        )
        try:
            output, _ = await process.communicate(await request.read())
        finally:
            # The client may be gone, and this server soon: what outlives the loop fails a later test.
            await ended(process)
        head, _, body = output.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split(" ")[0])
        return web.Response(status=status, headers=fields, body=body)


async def ended(process: asyncio.subprocess.Process) -> None:
    """Return when the process has ended, killed if it goes on, and nothing of it is left open."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            await pipe.read()
    await process.wait()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that nobody vouches for, and its key."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        [needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key
