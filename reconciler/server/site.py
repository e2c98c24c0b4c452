"""The pages as HTML, and those of the process; nothing in them is what a visitor sends. Source: ADR 17."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from msgspec.structs import replace

from reconciler.api.problem import Problem
from reconciler.clock import Clock
from reconciler.controller.service.signals import is_progressing
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import NotShown
from reconciler.report.mask import scrub_text
from reconciler.report.views.queries import NotFound
from reconciler.report.views.view_shapes import MatrixView
from reconciler.server.api import BadQuery, day_by, history_question, matrix_question, object_in_path, offset, only
from reconciler.server.live_views import LiveViews
from reconciler.server.metrics import CONTENT_TYPE, exposition
from reconciler.server.pages import (
    CACHE_CONTROL,
    CONTENT_SECURITY_POLICY,
    STATIC_FILES,
    cluster_page,
    fleet_page,
    history_page,
    not_found_page,
    not_shown_page,
    object_page,
    problems_page,
)
from reconciler.server.routes import (
    HEADERS,
    Answerer,
    Packed,
    PageRequest,
    Route,
    Slots,
    document,
    packed_text,
    plain,
    tagged,
)

_HTML: Final = "text/html"
_PAGE_HEADERS: Final = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
_FILE_HEADERS: Final = {**HEADERS, **_PAGE_HEADERS, "Cache-Control": CACHE_CONTROL}
_CELLS_MAX: Final = 12_500
"""So many cells of the matrix are one page."""
_KEPT_MAX: Final = 16
_KEPT_S: Final = 5.0
"""A page is sent again for this long: its times were right then, and its script counts on."""
_NOTHING_HERE: Final = "this page is not there; the fleet page leads to every object and cluster"

Page = Callable[[LiveViews, PageRequest], Awaitable[tuple[int, Callable[..., str], tuple[Any, ...]]]]
"""The drawing of a request: the status, the function, and its values between the fleet and the time."""


class Site:
    """The pages over the views of one service."""

    def __init__(self, views: LiveViews, clock: Clock, slots: Slots) -> None:
        """`clock`: the reference of relative times. `slots`: for the pages that are drawn."""
        self._views, self._clock, self._slots = views, clock, slots
        self._cache: dict[tuple[str, str], tuple[float, tuple[Any, ...], Packed]] = {}

    def routes(self) -> Sequence[Route]:
        """All of them."""
        pages: dict[str, Page] = {
            "/": _fleet,
            "/problems": _problems,
            "/history": self._history,
            "/objects/{kind}/{namespace}/{name}": _object,
            "/clusters/{name}": _cluster,
        }
        drawn = [Route(pattern=pattern, answer=self._drawn(page), slots=self._slots) for pattern, page in pages.items()]
        return [*drawn, Route(pattern="/static/{file}", answer=_static)]

    def _drawn(self, page: Page) -> Answerer:
        async def answer(call: PageRequest) -> web.StreamResponse:
            fleet = await self._views.fleet()
            try:
                status, draw, of = await page(self._views, call)
            except BadQuery as error:
                status, draw, of = _nothing(NotFound(why=str(error)), HTTPStatus.BAD_REQUEST)
            except NotShown as error:
                status, draw, of = HTTPStatus.SERVICE_UNAVAILABLE, not_shown_page, (str(error),)
            content = await self._sent(call, draw, (fleet, *of))
            return tagged(call.request, content, _PAGE_HEADERS, content_type=_HTML, status=status)

        return answer

    async def _history(self, views: LiveViews, call: PageRequest) -> Any:
        query = {name: value for name, value in call.query.items() if name != "by"}
        question = history_question(query, self._clock.now())
        day, document = await views.day(day_by(call.query)), await views.history(question)
        if isinstance(document, NotFound):
            return _nothing(document)
        asked_as = replace(question, since=query.get("since", ""), until=query.get("until", ""))
        return HTTPStatus.OK, history_page, (document[0]["events"], asked_as, day)

    async def _sent(self, call: PageRequest, draw: Callable[..., str], of: tuple[Any, ...]) -> Packed:
        """The page; one that was drawn of the same values a moment ago as it is."""
        key, now_s = (call.request.rel_url.raw_path_qs, draw.__name__), self._clock.monotonic_s()
        known = self._cache.get(key)
        if known is not None and now_s - known[0] < _KEPT_S:
            pairs = zip(known[1], of, strict=True)
            if all(one is other or (not isinstance(one, MatrixView) and one == other) for one, other in pairs):
                return known[2]
        now = self._clock.now()
        content = await self._views.apart(lambda: packed_text(draw(*of, now)))
        if len(self._cache) >= _KEPT_MAX:
            self._cache.clear()
        self._cache[key] = (now_s, of, content)
        return content


async def _fleet(views: LiveViews, call: PageRequest) -> Any:
    question = replace(matrix_question(call.query), cells_max=_CELLS_MAX)
    try:
        matrix = await views.matrix(question)
    except NotShown:
        matrix = None  # The fleet's own view says why.
    return HTTPStatus.OK, fleet_page, (matrix, question)


async def _problems(views: LiveViews, call: PageRequest) -> Any:
    only(call.query)
    return HTTPStatus.OK, problems_page, (await views.problems(),)


async def _object(views: LiveViews, call: PageRequest) -> Any:
    only(call.query, "cluster")
    view, live = await views.object(*object_in_path(call.parts)), None
    if isinstance(view, NotFound):
        return _nothing(view)
    if cluster := call.query.get("cluster"):
        live = await views.live(cluster, *object_in_path(call.parts))
        if isinstance(live, NotFound):
            return _nothing(live)
    return HTTPStatus.OK, object_page, (view, live)


async def _cluster(views: LiveViews, call: PageRequest) -> Any:
    only(call.query, "offset")
    view = await views.cluster(call.parts["name"], offset(call.query))
    if view is None:
        return _nothing(NotFound(why="there is no such cluster"))
    return HTTPStatus.OK, cluster_page, (view,)


def _nothing(answer: NotFound, status: int = HTTPStatus.NOT_FOUND) -> Any:
    return status, not_found_page, (answer,)


async def _static(call: PageRequest) -> web.StreamResponse:
    file = STATIC_FILES.get(call.request.rel_url.raw_path)
    if file is None:
        return web.Response(status=HTTPStatus.NOT_FOUND, text=f"{_NOTHING_HERE}\n", headers=HEADERS)
    return web.Response(body=file.content, content_type=file.content_type, charset="utf-8", headers=_FILE_HEADERS)


def routes(vitals: Vitals, clock: Clock) -> Sequence[Route]:
    """The pages over these vitals. They are read at each request, on the event loop, so they are never torn."""

    async def livez(call: PageRequest) -> web.StreamResponse:
        alive = is_progressing(vitals, clock.monotonic_s())
        return plain(200 if alive else 503, "ok" if alive else f"stalled while {vitals.phase}")

    async def readyz(call: PageRequest) -> web.StreamResponse:
        checks = readiness(vitals)
        is_ready = all(state == "ok" for state in checks.values())
        body = {"ready": is_ready, "checks": checks, "degraded": degradations(vitals)}
        return document(body, 200 if is_ready else 503)

    async def metrics(call: PageRequest) -> web.StreamResponse:
        body = exposition(vitals, clock.monotonic_s())
        return web.Response(body=body, headers={**HEADERS, "Content-Type": CONTENT_TYPE})

    return (
        Route(pattern="/livez", answer=livez, is_open=True),
        Route(pattern="/readyz", answer=readyz, is_open=True),
        Route(pattern="/metrics", answer=metrics),
    )


def readiness(vitals: Vitals) -> dict[str, str]:
    """Return each check with `ok` or its fault. A cluster that does not answer degrades, it does not fail."""
    # Where all answering clusters are owned by a copy of the journal, nothing can be written.
    answering = {name for name, cluster in vitals.snapshot.clusters.items() if cluster.is_up}
    is_held = bool(answering) and answering <= {problem.cluster for problem in _held_elsewhere(vitals)}
    return {
        "source": "ok" if vitals.is_ready else scrub_text(vitals.source_error) or "the store is not loaded yet",
        "journal": scrub_text(vitals.journal_error) or "ok",
        "fleet": "another process holds it in every cluster that answers" if is_held else "ok",
    }


def _held_elsewhere(vitals: Vitals) -> list[Problem]:
    return [problem for problem in vitals.snapshot.problems if problem.code == "fleet-held-elsewhere"]


def degradations(vitals: Vitals) -> list[str]:
    """Return the faults that do not make the daemon unready."""
    left = "the store has no Cluster document for it; {} of our objects are there still"
    lines = [
        f"cluster {name}: {left.format(one.total) if one.is_left else one.why_away or 'cannot be read'}"
        for name, one in sorted(vitals.snapshot.clusters.items())
        if one.is_left or not one.is_up
    ]
    lines += [f"cluster {problem.cluster}: {problem.message}" for problem in _held_elsewhere(vitals)]
    if vitals.is_ready and vitals.source_error:
        lines.insert(0, f"store: {vitals.source_error}; the last good revision stays in force")
    return [scrub_text(line) for line in lines]
