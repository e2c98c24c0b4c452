"""Read-only pages over HTTP, on loopback or a Unix socket: health, metrics and status.

Nothing here changes anything, needs a cookie or runs a script; who may read it is decided by where it listens.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from reconciler.adapters.clock import Clock
from reconciler.daemon.service.service import is_progressing
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.errors import ConfigurationError
from reconciler.report.text.safe import ascii_json
from reconciler.web.metrics import CONTENT_TYPE, exposition
from reconciler.web.status import degradations, page, readiness, status_document

log = logging.getLogger("reconciler")

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONGEST_LINE: Final = 4096


def build_app(vitals: Vitals, clock: Clock) -> web.Application:
    """The pages over these vitals. They are read at each request, on the event loop, so they are never torn."""
    app = web.Application(middlewares=[_guarded], client_max_size=1024)

    async def livez(request: web.Request) -> web.Response:
        alive = is_progressing(vitals, clock.monotonic_s())
        return _plain(200 if alive else 503, "ok" if alive else f"stalled while {vitals.phase}")

    async def readyz(request: web.Request) -> web.Response:
        checks = readiness(vitals)
        is_ready = all(found == "ok" for found in checks.values())
        body = {"ready": is_ready, "checks": checks, "degraded": degradations(vitals)}
        return _json(body, 200 if is_ready else 503)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=exposition(vitals, clock.monotonic_s), headers={"Content-Type": CONTENT_TYPE})

    async def status(request: web.Request) -> web.Response:
        return _json(status_document(vitals, clock.monotonic_s()), 200)

    async def root(request: web.Request) -> web.Response:
        return web.Response(text=page(vitals, clock.monotonic_s()), content_type="text/html", charset="utf-8")

    pages = {"/livez": livez, "/readyz": readyz, "/metrics": metrics, "/status.json": status, "/": root}
    for path, handler in pages.items():
        app.router.add_get(path, handler)
    return app


@web.middleware
async def _guarded(request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]) -> Any:
    try:
        answer = await handler(request)
    except web.HTTPException as error:
        # aiohttp's own pages would repeat parts of the request.
        answer = _plain(error.status, error.reason)
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
    answer.headers.update(_HEADERS)
    return answer


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")


def _json(body: dict[str, Any], status: int) -> web.Response:
    text = ascii_json(json.dumps(body, ensure_ascii=False, indent=1))
    return web.Response(status=status, text=f"{text}\n", content_type="application/json")


@asynccontextmanager
async def serving(listen: str | None, vitals: Vitals, clock: Clock) -> AsyncIterator[str]:
    """The pages served until the block ends; gives the address (with the port that was chosen for `:0`).

    `listen`: `HOST:PORT`, `[::1]:9180`, `unix:/run/fleet-reconciler/http.sock`, or None to serve nothing.

    Raises:
        ConfigurationError: the address cannot be listened at.
    """
    if not listen:
        yield ""
        return
    runner = web.AppRunner(
        build_app(vitals, clock),
        access_log=None,
        handle_signals=False,
        shutdown_timeout=1.0,
        keepalive_timeout=30.0,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )
    await runner.setup()
    try:
        try:
            address = await _start(runner, listen)
        except OSError as error:
            raise ConfigurationError(f"--listen {listen}: {error.strerror or error}; choose another address") from error
        log.info("pages are served", extra={"event": "Listening", "obj": address})
        yield address
    finally:
        await runner.cleanup()


async def _start(runner: web.AppRunner, listen: str) -> str:
    if listen.startswith("unix:"):
        path = Path(listen.removeprefix("unix:"))
        # asyncio takes away a socket that an earlier process left behind: the journal's lock lets only one run.
        await web.UnixSite(runner, str(path)).start()
        await asyncio.to_thread(path.chmod, 0o660)
        return listen
    host, port = split_address(listen)
    await web.TCPSite(runner, host, port).start()
    bound = runner.addresses[0]
    if not _is_loopback(bound[0]):
        log.warning(
            "the pages can be read by whoever reaches this address: names of clusters and of the store's problems",
            extra={"event": "Listening", "obj": listen},
        )
    shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    return f"{shown}:{bound[1]}"


def split_address(listen: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        ConfigurationError: it is not of the form HOST:PORT.

    >>> split_address("[::1]:9180")
    ('::1', 9180)
    """
    host, separator, port = listen.rpartition(":")
    host = host.strip("[]")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"--listen {listen}: write HOST:PORT (127.0.0.1:9180) or unix:PATH")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
