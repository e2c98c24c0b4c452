"""One comment for each pull request and fleet, found by its hidden first line; older ones are marked outdated."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from msgspec import Struct

from reconciler.errors import ForgeError

_MARKER = re.compile(r"<!-- fleet-plan( [A-Za-z0-9._/-]+)? -->")


class Comment(Struct, frozen=True, kw_only=True):
    """A comment as the forge has it. `is_ours`: the token's owner wrote it; `is_outdated`: it is marked so already."""

    key: str
    body: str
    is_ours: bool
    is_outdated: bool = False


class Forge(Protocol):
    """Comments of one pull request at a forge. Each method raises ForgeError."""

    def conversation(self) -> tuple[list[Comment], str]:
        """All comments, oldest first, and the head commit; empty: not known."""

    def create(self, body: str) -> None:
        """Add a comment."""

    def update(self, comment: Comment, body: str) -> None:
        """Give a comment another text."""

    def outdate(self, comment: Comment) -> None:
        """Mark a comment as outdated."""


class PublishedComment(Enum):
    """The result of publishing a plan as a comment."""

    CREATED = "commented"
    UPDATED = "edited the comment"
    SAME = "the comment says so already"
    NOT_WANTED = "there is nothing to say, and no comment that would have to say so"
    OVERTAKEN = "a newer commit has been pushed, whose job will comment"


def publish(forge: Forge, body: str, *, head: str = "", creates: bool = True) -> PublishedComment:
    """Publish `body`, of the commit `head`; `creates`: also a missing comment. Raises ForgeError."""
    marker = marker_of(body)
    try:
        comments, known_head = forge.conversation()
    except (KeyError, TypeError, AttributeError) as error:
        raise ForgeError(f"the forge answers with something else than comments: {error!r}") from error
    if head and known_head and head != known_head:
        return PublishedComment.OVERTAKEN
    ours = [one for one in comments if one.is_ours and not one.is_outdated and _first_line(one.body) == marker]
    outcome = PublishedComment.NOT_WANTED
    if not ours and creates:
        forge.create(body)
        outcome = PublishedComment.CREATED
    elif ours and _normal(ours[-1].body) == _normal(body):
        outcome = PublishedComment.SAME
    elif ours:
        forge.update(ours[-1], body)
        outcome = PublishedComment.UPDATED
    for old in ours[:-1]:
        forge.outdate(old)
    return outcome


def marker_of(body: str) -> str:
    """Return the hidden first line of a plan. Raises ForgeError: the text does not begin with one."""
    first = _first_line(body)
    if not _MARKER.fullmatch(first):
        raise ForgeError("the file is no plan: its first line is not the hidden one that 'diff -o markdown' writes")
    return first


def _first_line(body: str) -> str:
    return body.partition("\n")[0].strip()


def _normal(body: str) -> str:
    """Forges write line ends in their own way."""
    return body.replace("\r\n", "\n").strip()


_TIMEOUT_S: Final = 30.0
_BYTES_MAX: Final = 32 * 1024 * 1024
_PAUSES_S: Final = (1.0, 4.0)
"""Before a request that may be repeated is made again."""
_PASSING: Final = frozenset({429, 500, 502, 503, 504})


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would take the token along, to wherever it leads."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class Requests:
    """Requests to one forge. `headers`: sent with each, the token among them; `pause`: waits so many seconds."""

    def __init__(self, base: str, headers: Mapping[str, str], *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the address of the API. Raises ForgeError: it is none of HTTP."""
        if urlsplit(base).scheme not in ("http", "https"):
            raise ForgeError(f"{base}: the API of a forge has an address that begins with https://")
        self._base = base.rstrip("/")
        self._headers = {"User-Agent": "fleet-reconciler", "Content-Type": "application/json", **headers}
        self._pause = pause
        self._opener: OpenerDirector = build_opener(_NoRedirect())

    def ask(
        self, method: str, path: str, body: Any = None, *, is_repeatable: bool = True
    ) -> tuple[Any, dict[str, str]]:
        """Return JSON and headers. `path`: below the API; `is_repeatable`: tried again. Raises ForgeError."""
        pauses_s = _PAUSES_S if is_repeatable else ()
        for pause_s in (*pauses_s, None):
            try:
                return self._once(method, f"{self._base}{path}", body)
            except HTTPError as error:
                with error:
                    if error.code not in _PASSING or pause_s is None:
                        raise ForgeError(_refusal(method, self._base + path, error)) from error
            except (URLError, OSError, http.client.HTTPException) as error:
                if pause_s is None:
                    raise ForgeError(f"{self._base}: no answer: {getattr(error, 'reason', error)}") from error
            self._pause(pause_s)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, url: str, body: Any) -> tuple[Any, dict[str, str]]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data=data, headers=self._headers, method=method)  # noqa: S310 - the scheme was checked
        with self._opener.open(request, timeout=_TIMEOUT_S) as response:
            text = response.read(_BYTES_MAX + 1)
            headers = {name.lower(): value for name, value in response.headers.items()}
        if len(text) > _BYTES_MAX:
            raise ForgeError(f"{url}: the answer is longer than {_BYTES_MAX} bytes")
        try:
            return json.loads(text), headers
        except ValueError as error:
            raise ForgeError(f"{url}: the answer is no JSON; is that the address of the API?") from error


def _refusal(method: str, url: str, error: HTTPError) -> str:
    try:
        message = json.loads(error.read(4096))["message"]
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        message = error.reason
    hints = {
        401: "; the token is not known there, or has expired",
        403: "; the token may not do that: a comment needs 'pull-requests: write' at GitHub, the scope api at GitLab",
        404: "; it is not there, or the token may not see it",
    }
    return f"{method} {url}: {error.code} {message}{hints.get(error.code, '')}"
