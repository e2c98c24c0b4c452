"""Lists of one cluster, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from reconciler.adapters.kube import requests
from reconciler.adapters.kube.answers import reading
from reconciler.adapters.kube.bounds.budget import Budget
from reconciler.adapters.kube.requests import ListQuery, Request, Resource
from reconciler.adapters.kube.transport import Answer
from reconciler.errors import AnswerTooLarge, BadAnswer, ListExpired


class HasToken(Protocol):
    """A page: its token leads to the next one and is empty on the last."""

    @property
    def token(self) -> str:
        """The continue token."""


PAGES_MAX: Final = 4000
"""Two million objects: a longer list is unusable."""

_P = TypeVar("_P", bound=HasToken)


class Lists:
    """Reads lists within the shared memory limit."""

    def __init__(self, cluster: str, send: Callable[[Request], Awaitable[Answer]], budget: Budget) -> None:
        """Nothing is asked yet."""
        self._cluster, self._send, self._budget = cluster, send, budget

    async def pages(
        self, resource: Resource, query: ListQuery, parse: Callable[[bytes], _P], *, accept: str = requests.JSON
    ) -> list[_P]:
        """Return every page of one list, as of one resourceVersion.

        If the token expires on the way, the list is read again in one piece, which cannot expire. A page that is too
        large to be read is asked for again in smaller ones, which an API server that answers from memory may not make.
        """
        pages: list[_P] = []
        token, limit = "", requests.LIST_PAGE
        with self._budget.share() as take:
            while len(pages) < PAGES_MAX:
                request = requests.list_page(resource, query, limit=limit, token=token, accept=accept)
                try:
                    answer = await self._send(request)
                except AnswerTooLarge:
                    if limit == 1:
                        raise
                    limit, query = max(1, limit // 10), replace(query, is_cached=False)
                    continue
                except ListExpired:
                    if not token:
                        raise
                    answer = await self._send(requests.list_page(resource, query, limit=0, accept=accept))
                    pages.clear()
                take(len(answer.body))
                with reading(self._cluster, f"list of {resource.plural}"):
                    pages.append(parse(answer.body))
                token = pages[-1].token
                if not token:
                    return pages
        raise BadAnswer(self._cluster, f"the list of {resource.plural} has more than {PAGES_MAX} pages")
