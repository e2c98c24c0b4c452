"""Pages of the process itself: alive, ready, metrics, and the status as it was before there was an API."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from reconciler.adapters.clock import Clock
from reconciler.daemon.service.service import is_progressing
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.web.answers import HEADERS, document, plain
from reconciler.web.metrics import CONTENT_TYPE, exposition
from reconciler.web.routes import Asked, Route
from reconciler.web.status import degradations, readiness, status_document
from reconciler.web.views import Views


def routes(vitals: Vitals, clock: Clock) -> Sequence[Route]:
    """The pages over these vitals. They are read at each request, on the event loop, so they are never torn."""

    async def livez(views: Views, asked: Asked) -> web.StreamResponse:
        alive = is_progressing(vitals, clock.monotonic_s())
        return plain(200 if alive else 503, "ok" if alive else f"stalled while {vitals.phase}")

    async def readyz(views: Views, asked: Asked) -> web.StreamResponse:
        checks = readiness(vitals)
        is_ready = all(found == "ok" for found in checks.values())
        body = {"ready": is_ready, "checks": checks, "degraded": degradations(vitals)}
        return document(body, 200 if is_ready else 503)

    async def metrics(views: Views, asked: Asked) -> web.StreamResponse:
        body = exposition(vitals, clock.monotonic_s)
        return web.Response(body=body, headers={**HEADERS, "Content-Type": CONTENT_TYPE})

    async def status(views: Views, asked: Asked) -> web.StreamResponse:
        return document(status_document(vitals, clock.monotonic_s()))

    return (
        Route(pattern="/livez", answer=livez, is_open=True),
        Route(pattern="/readyz", answer=readyz, is_open=True),
        Route(pattern="/metrics", answer=metrics),
        Route(pattern="/status.json", answer=status),
    )
