"""`/api/v1`: the views as JSON. It only reads, and explains why it does not understand a question.

Source: ADR 17.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from reconciler.adapters.clock import Clock
from reconciler.errors import NotShown
from reconciler.report.views.questions import NotFound
from reconciler.report.views.shapes import ObjectView
from reconciler.web.answers import Packed, fault, packed, tagged
from reconciler.web.asking import BadQuestion, history_question, matrix_question, named, offset, only
from reconciler.web.events import Events
from reconciler.web.live_views import LiveViews
from reconciler.web.routes import Asked, Route
from reconciler.web.views import Views

BASE: Final = "/api/v1"
LAST: Final = "Fleet-Last-Event"
"""The header of `history` with the number to continue after."""
_PACKED_MAX: Final = 16
_NAMED: Final = 20


class Api:
    """The endpoints over the views of one service."""

    def __init__(self, views: LiveViews, events: Events, clock: Clock) -> None:
        """Answer from these."""
        self._views, self._events, self._clock = views, events, clock
        self._packed: dict[int, tuple[Any, Packed]] = {}

    def routes(self) -> Sequence[Route]:
        """All of them."""
        by_path = {
            "fleet": self._fleet,
            "status": self._status,
            "matrix": self._matrix,
            "problems": self._problems,
            "history": self._history,
            "explain/{kind}/{namespace}/{name}": self._explain,
            "objects/{kind}/{namespace}/{name}": self._object,
            "clusters": self._clusters,
            "clusters/{name}": self._cluster,
            "events": self._stream,
        }
        return [Route(pattern=f"{BASE}/{path}", answer=_told(answer)) for path, answer in by_path.items()]

    async def _fleet(self, asked: Asked) -> web.StreamResponse:
        only(asked.query)
        return await self._json(asked, await self._views.fleet())

    async def _status(self, asked: Asked) -> web.StreamResponse:
        only(asked.query)
        return await self._json(asked, await self._views.status())

    async def _matrix(self, asked: Asked) -> web.StreamResponse:
        return await self._json(asked, await self._views.matrix(matrix_question(asked.query)))

    async def _problems(self, asked: Asked) -> web.StreamResponse:
        only(asked.query)
        return await self._json(asked, await self._views.problems())

    async def _history(self, asked: Asked) -> web.StreamResponse:
        found = await self._views.history_from(history_question(asked.query, self._clock.now()))
        if isinstance(found, NotFound):
            return _not_found(found)
        return await self._json(asked, found[0], {LAST: str(found[1])})

    async def _explain(self, asked: Asked) -> web.StreamResponse:
        found = await self._found(asked)
        if isinstance(found, NotFound):
            return _not_found(found)
        if not found.explanation:
            return _not_found(NotFound(why="the store has it no longer, so there is nothing to explain"))
        return await self._json(asked, found.explanation)

    async def _object(self, asked: Asked) -> web.StreamResponse:
        found = await self._found(asked)
        return _not_found(found) if isinstance(found, NotFound) else await self._json(asked, found)

    async def _found(self, asked: Asked) -> ObjectView | NotFound:
        only(asked.query)
        return await self._views.object(*named(asked.parts))

    async def _clusters(self, asked: Asked) -> web.StreamResponse:
        only(asked.query)
        return await self._json(asked, await self._views.clusters())

    async def _cluster(self, asked: Asked) -> web.StreamResponse:
        only(asked.query, "offset")
        found = await self._views.cluster(asked.parts["name"], offset(asked.query))
        if found is None:
            names = ", ".join(head.name for head in (await self._views.clusters())[:_NAMED])
            return _not_found(NotFound(why=f"there is no such cluster; there is {names or 'none'}"))
        return await self._json(asked, found)

    async def _stream(self, asked: Asked) -> web.StreamResponse:
        return await self._events.stream(asked.request)

    async def _json(self, asked: Asked, value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return the value as JSON; reuse the bytes of the same value."""
        known = self._packed.get(id(value))
        if known is None or known[0] is not value:
            if len(self._packed) >= _PACKED_MAX:
                self._packed.clear()
            known = (value, await asyncio.to_thread(packed, value))
            self._packed[id(value)] = known
        return tagged(asked.request, known[1], headers)


def _told(answer: Callable[[Asked], Any]) -> Callable[[Views, Asked], Any]:
    """Return the endpoint with its errors turned into answers."""

    async def answered(views: Views, asked: Asked) -> web.StreamResponse:
        try:
            found: web.StreamResponse = await answer(asked)
        except BadQuestion as error:
            return fault(HTTPStatus.BAD_REQUEST, str(error), "docs/reference/api.md says what may be asked")
        except NotShown as error:
            found = fault(HTTPStatus.SERVICE_UNAVAILABLE, str(error), "ask again in a moment; `/readyz` says how it is")
            found.headers["Retry-After"] = "5"
        return found

    return answered


def _not_found(found: NotFound) -> web.Response:
    todo = f"did you mean {' or '.join(found.close)}?" if found.close else "`/api/v1/matrix?kind=*` lists what there is"
    return fault(HTTPStatus.NOT_FOUND, found.why, todo)
