"""JSON over HTTP with a forge: few requests, a token that goes nowhere else, faults in words.

Standard library, since a job makes five requests and starts for them. Proxies are those of the environment.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from msgspec import Struct

from reconciler.errors import ForgeError

_TIMEOUT_S: Final = 30.0
_BYTES_MAX: Final = 32 * 1024 * 1024
_PAUSES_S: Final = (1.0, 4.0)
"""Before a request that may be repeated is made again."""
_PASSING: Final = frozenset({429, 500, 502, 503, 504})


class ForgeAnswer(Struct, frozen=True):
    """The JSON of an answer and its headers, names in lower case."""

    body: Any
    headers: Mapping[str, str]


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would take the token along, to wherever it leads."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


class Requests:
    """Requests to one forge. `headers`: sent with each, the token among them; `pause`: waits so many seconds."""

    def __init__(self, base: str, headers: Mapping[str, str], *, pause: Callable[[float], None] = time.sleep) -> None:
        """Check the address of the API.

        Raises:
            ForgeError: the address is none of HTTP.
        """
        if urlsplit(base).scheme not in ("http", "https"):
            raise ForgeError(f"{base}: the API of a forge has an address that begins with https://")
        self._base = base.rstrip("/")
        self._headers = {"User-Agent": "fleet-reconciler", "Content-Type": "application/json", **headers}
        self._pause = pause
        self._opener: OpenerDirector = build_opener(_NoRedirect())

    def ask(self, method: str, path: str, body: Any = None, *, is_repeatable: bool = True) -> ForgeAnswer:
        """The answer. `path`: below the API. `is_repeatable`: made again when the forge is briefly not well.

        Raises:
            ForgeError: no answer, a refusal, or something that is no JSON.
        """
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

    def _once(self, method: str, url: str, body: Any) -> ForgeAnswer:
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data=data, headers=self._headers, method=method)  # noqa: S310 - the scheme was checked
        with self._opener.open(request, timeout=_TIMEOUT_S) as response:
            text = response.read(_BYTES_MAX + 1)
            headers = {name.lower(): value for name, value in response.headers.items()}
        if len(text) > _BYTES_MAX:
            raise ForgeError(f"{url}: the answer is longer than {_BYTES_MAX} bytes")
        try:
            return ForgeAnswer(body=json.loads(text), headers=headers)
        except ValueError as error:
            raise ForgeError(f"{url}: the answer is no JSON; is that the address of the API?") from error


def _refusal(method: str, url: str, error: HTTPError) -> str:
    try:
        said = json.loads(error.read(4096))["message"]
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        said = error.reason
    hints = {
        401: "; the token is not known there, or has expired",
        403: "; the token may not do that: a comment needs 'pull-requests: write' at GitHub, the scope api at GitLab",
        404: "; it is not there, or the token may not see it",
    }
    return f"{method} {url}: {error.code} {said}{hints.get(error.code, '')}"
