"""Read-only pages over HTTP, on loopback or a Unix socket: health, metrics and status.

Nothing here changes anything, needs a cookie or runs a script; who may read it is decided by where it listens.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
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
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:/@\s]+))(?::[0-9]*)?")

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
"""A request to its answer."""


def pages(vitals: Vitals, clock: Clock, names: Collection[str] | None = None) -> Handler:
    """The pages over these vitals. They are read at each request, on the event loop, so they are never torn.

    `names`: of hosts that we answer to beside localhost and addresses; None: to any, where no browser can come from.
    """

    def livez() -> web.Response:
        alive = is_progressing(vitals, clock.monotonic_s())
        return _plain(200 if alive else 503, "ok" if alive else f"stalled while {vitals.phase}")

    def readyz() -> web.Response:
        checks = readiness(vitals)
        is_ready = all(found == "ok" for found in checks.values())
        body = {"ready": is_ready, "checks": checks, "degraded": degradations(vitals)}
        return _json(body, 200 if is_ready else 503)

    def metrics() -> web.Response:
        return web.Response(
            body=exposition(vitals, clock.monotonic_s), headers={**_HEADERS, "Content-Type": CONTENT_TYPE}
        )

    def status() -> web.Response:
        return _json(status_document(vitals, clock.monotonic_s()), 200)

    def root() -> web.Response:
        text = page(vitals, clock.monotonic_s())
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=_HEADERS)

    by_path = {"/livez": livez, "/readyz": readyz, "/metrics": metrics, "/status.json": status, "/": root}

    async def answer(request: web.BaseRequest) -> web.Response:
        if names is not None and not is_for_us(request.headers.getall("Host", []), names):
            # Else a page of somebody else, whose name was made to lead here, could read the status in a browser.
            return _plain(HTTPStatus.MISDIRECTED_REQUEST, "This name is not known here; see --listen-name")
        make = by_path.get(request.path)
        if make is None:
            return _plain(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND.phrase)
        if request.method not in ("GET", "HEAD"):
            refused = _plain(HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.METHOD_NOT_ALLOWED.phrase)
            refused.headers["Allow"] = "GET,HEAD"
            return refused
        return make()

    return answer


def is_for_us(hosts: Sequence[str], names: Collection[str]) -> bool:
    """Whether a request was meant for this place, by its Host headers.

    An address is: who reaches us by it was not led here by a name. So is a request that names no host (HTTP/1.0).

    >>> is_for_us(["127.0.0.1:9180"], ()), is_for_us(["[::1]"], ()), is_for_us(["rebound.example"], ())
    (True, True, False)
    """
    if len(hosts) > 1:
        return False
    if not hosts or not hosts[0]:
        return True
    match = _HOST.fullmatch(hosts[0].lower())
    name = (match["address"] or match["name"].rstrip(".")) if match is not None else ""
    return name == "localhost" or name in names or _is_address(name)


class _Connection(web.RequestHandler):
    """A connection that answers what is no request with a line of ours, and tells nobody about it."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer: never a word of the request, which the library's own pages repeat."""
        self.log_exception("a request could not be answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer is sent already")
        answer = _plain(status, HTTPStatus(status).phrase)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Anybody can make this happen as often as they like: it is no news."""
        log.debug(*args, **kw)


class _Server(web.Server):
    """Makes the connections."""

    def __init__(self, handler: Handler, **options: Any) -> None:
        super().__init__(_contained(handler))
        self._options = options

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._options)


def _contained(handler: Handler) -> Handler:
    """The boundary of one page: a fault of ours is told once for each page, and answered without its words."""
    told: set[tuple[str, type[Exception]]] = set()

    async def answer(request: web.BaseRequest) -> web.Response:
        try:
            return await handler(request)
        except Exception as error:
            if (request.path, type(error)) not in told:
                told.add((request.path, type(error)))
                log.exception("a page could not be made", extra={"event": "InternalError", "obj": request.path})
            return _plain(500, HTTPStatus.INTERNAL_SERVER_ERROR.phrase)

    return answer


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=_HEADERS)


def _json(body: dict[str, Any], status: int) -> web.Response:
    text = ascii_json(json.dumps(body, ensure_ascii=False, indent=1))
    return web.Response(status=status, text=f"{text}\n", content_type="application/json", headers=_HEADERS)


@asynccontextmanager
async def serving(listen: str | None, vitals: Vitals, clock: Clock, names: Collection[str] = ()) -> AsyncIterator[str]:
    """The pages served until the block ends; gives the address (with the port that was chosen for `:0`).

    `listen`: `HOST:PORT`, `[::1]:9180`, `unix:/run/fleet-reconciler/http.sock`, or None to serve nothing. `names`: of
    hosts that are answered to, beside localhost, addresses and the host that is listened at.

    Raises:
        ConfigurationError: the address cannot be listened at.
    """
    if not listen:
        yield ""
        return
    server = _Server(
        pages(
            vitals, clock, None if listen.startswith("unix:") else {*map(str.lower, names), split_address(listen)[0]}
        ),
        access_log=None,
        keepalive_timeout=30.0,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
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


async def _start(runner: web.ServerRunner, listen: str) -> str:
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


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
