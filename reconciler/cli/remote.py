"""A service on another machine (https, http, unix), asked over its API: no redirects, no unlimited answers."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from reconciler.decoding import decompressed
from reconciler.errors import ConfigurationError, ServiceError
from reconciler.secret_files import is_loopback

_BASE: Final = "/api/v1"
_TIMEOUT_S: Final = 30.0
_BYTES_MAX: Final = 256 * 1024 * 1024
_UNIX: Final = "unix:"


class RemoteAnswer(NamedTuple):
    """A document, and the headers that came with it."""

    document: dict[str, Any]
    headers: Mapping[str, str]


class RemoteService:
    """One service."""

    def __init__(self, url: str, *, token: str = "", ca: Path | None = None) -> None:
        """Send nothing. `ca`: trusted instead of the machine's. Raises ConfigurationError: token over http, bad URL."""
        self._url, self._token = url, token
        self._prefix = ""
        self._host, self._port = "localhost", 0
        self._context: ssl.SSLContext | None = None
        if url.startswith(_UNIX):
            return
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigurationError(f"--server {_bare(url)}: write https://HOST, http://HOST:PORT or unix:PATH")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigurationError(
                f"--server {_bare(url)}: name the address alone; a token goes into --server-token-file"
            )
        is_secure = parts.scheme == "https"
        if token and not is_secure and not is_loopback(host):
            raise ConfigurationError(
                f"--server {_bare(url)}: the token would be sent for everybody on the way to read; use https, a tunnel "
                "to a loopback address, or unix:PATH"
            )
        self._host, self._port, self._prefix = host, port or (443 if is_secure else 80), parts.path.rstrip("/")
        try:
            self._context = (
                ssl.create_default_context(cafile=str(ca) if ca is not None else None) if is_secure else None
            )
        except OSError as error:
            why = error.strerror or "it holds no certificate"
            raise ConfigurationError(f"--server-ca {ca}: {why}") from error

    def get(self, *path: str, **query: str | int) -> RemoteAnswer:
        """Return a document below `/api/v1`, without empty parameters. Raises ServiceError with why and what to do."""
        where = "/".join((self._prefix + _BASE, *(quote(part, safe="") for part in path)))
        encoded = urlencode({name: value for name, value in query.items() if value != ""})
        status, headers, body = self._request(f"{where}?{encoded}" if encoded else where)
        document: Any = None
        with suppress(ValueError, RecursionError):
            is_packed = headers.get("content-encoding") == "gzip"
            document = json.loads(decompressed(body, _BYTES_MAX, is_gzip=True) if is_packed else body)
        if status == HTTPStatus.OK and isinstance(document, dict):
            if document.get("version") != 1:
                raise self._error("it answers in a form that is not known here", "install the version that it runs")
            return RemoteAnswer(document, headers)
        raise self._refusal(status, document)

    def _refusal(self, status: int, document: Any) -> ServiceError:
        if isinstance(document, dict) and "error" in document:
            return self._error(str(document["error"]), str(document.get("todo", "")))
        if status == HTTPStatus.UNAUTHORIZED:
            if self._token:
                return self._error("it refuses the token", "look whether --server-token-file has that of the service")
            return self._error("it asks for a token", "name a file that has it with --server-token-file")
        if status == HTTPStatus.MISDIRECTED_REQUEST:
            return self._error("it does not know itself by this name", f"start it with --listen-name {self._host}")
        if status == HTTPStatus.NOT_FOUND:
            return self._error("it has no /api/v1", "it is an older version of the reconciler, or something else")
        return self._error(
            f"it answers {status} and nothing that is known here", "see whether a reconciler listens there"
        )

    def _request(self, target: str) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._connection()
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read(_BYTES_MAX + 1)
            fields = {name.lower(): value for name, value in answer.getheaders()}
        except ssl.SSLCertVerificationError as error:
            todo = "name the file with its authority with --server-ca"
            raise self._error(f"its certificate is not trusted: {error.verify_message}", todo) from error
        except TimeoutError as error:
            raise self._error(
                "it does not answer in time", "see whether it runs, and whether a firewall is between"
            ) from error
        except socket.gaierror as error:
            raise self._error("there is no host of that name", "correct the address") from error
        except (ConnectionRefusedError, FileNotFoundError) as error:
            raise self._error(
                "nobody listens there", "see whether the service runs, and with which --listen"
            ) from error
        except PermissionError as error:
            raise self._error("this user may not open it", "join the group of the socket") from error
        except (OSError, http.client.HTTPException) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise self._error(f"it cannot be asked: {why}", "see whether a reconciler listens there") from error
        finally:
            connection.close()
        if len(body) > _BYTES_MAX:
            raise self._error("its answer is too large", "ask for less")
        return answer.status, fields, body

    def _connection(self) -> http.client.HTTPConnection:
        if self._url.startswith(_UNIX):
            return _UnixConnection(self._url.removeprefix(_UNIX))
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_S, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)

    def _error(self, why: str, todo: str) -> ServiceError:
        return ServiceError(f"--server {_bare(self._url)}: {why}" + (f"; {todo}" if todo else ""))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _bare(url: str) -> str:
    if url.startswith(_UNIX):
        return url
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
