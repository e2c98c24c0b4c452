"""Paths and their handlers. A path has parts in braces, each of which matches one part of the request's path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from aiohttp import web
from msgspec import Struct

from reconciler.web.views import Views


class Asked(NamedTuple):
    """A request. `parts`: values of the parts in braces. `query`: each name with its first value."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    request: web.BaseRequest


Answerer = Callable[[Views, Asked], Awaitable[web.StreamResponse]]
"""A page: it draws the answers of the views."""


class Route(Struct, frozen=True, kw_only=True):
    """`pattern`: `/api/v1/clusters/{name}`. `is_open`: it is answered without the token."""

    pattern: str
    answer: Answerer
    is_open: bool = False


class Router:
    """The first route that fits a path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        """Know these routes."""
        self._routes = [(route.pattern.split("/"), route) for route in routes]

    def find(self, raw_path: str) -> tuple[Route, Mapping[str, str]] | None:
        """Return the route and its parts; None: unknown. `raw_path`: as sent, so that `%2F` separates nothing."""
        given = raw_path.split("/")
        for pattern, route in self._routes:
            if len(pattern) == len(given) and (parts := _parts(pattern, given)) is not None:
                return route, parts
        return None


def _parts(pattern: Sequence[str], given: Sequence[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for wanted, raw in zip(pattern, given, strict=True):
        text = unquote(raw)
        if wanted.startswith("{"):
            if not text:
                return None
            found[wanted[1:-1]] = text
        elif wanted != text:
            return None
    return found
