"""Paths with parts in braces, access by Host header and token, headers of answers, and the limits of readers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import gzip
import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from aiohttp import Payload, web
from aiohttp.abc import AbstractStreamWriter
from msgspec import Struct

from reconciler.report.json_parts import json_text
from reconciler.report.safe_text import ascii_json


class PageRequest(NamedTuple):
    """A request. `parts`: values of the parts in braces. `query`: each name with its first value."""

    parts: Mapping[str, str]
    query: Mapping[str, str]
    request: web.BaseRequest


Answerer = Callable[[PageRequest], Awaitable[web.StreamResponse]]


class Route(Struct, frozen=True, kw_only=True):
    """A pattern (`/clusters/{name}`). `is_open`: needs no token. `slots`: taken while answering; None: no limit."""

    pattern: str
    answer: Answerer
    is_open: bool = False
    slots: Slots | None = None


def route_of(routes: Sequence[Route], raw_path: str) -> tuple[Route, Mapping[str, str]] | None:
    """Return the first route that fits a path, and its parts; None: unknown. `raw_path`: as sent, with `%2F` a name."""
    segments = list(map(unquote, raw_path.split("/")))
    for route in routes:
        pattern = route.pattern.split("/")
        if len(pattern) == len(segments) and all(
            text if wanted.startswith("{") else wanted == text for wanted, text in zip(pattern, segments, strict=True)
        ):
            pairs = zip(pattern, segments, strict=True)
            return route, {wanted[1:-1]: text for wanted, text in pairs if wanted.startswith("{")}
    return None


CREDENTIAL: Final = "listen-token"
"""The name of the token among the credentials of a systemd service."""
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:/@\s]+))(?::[0-9]*)?")


def is_for_us(hosts: Sequence[str], names: Collection[str]) -> bool:
    """Return whether the Host headers name this server.

    An IP address does: its caller was not led here by a name. So does a request that names no host (HTTP/1.0).

    >>> is_for_us(["127.0.0.1:9180"], ()), is_for_us(["[::1]"], ()), is_for_us(["rebound.example"], ())
    (True, True, False)
    """
    if len(hosts) > 1:
        return False
    if not hosts or not hosts[0]:
        return True
    match = _HOST.fullmatch(hosts[0].lower())
    name = (match["address"] or match["name"].rstrip(".")) if match is not None else ""
    if name == "localhost" or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def has_token(headers: Sequence[str], token: str) -> bool:
    """Return whether Authorization has the token, as Bearer or Basic, in constant time. Source: RFC 6750; RFC 7617."""
    if len(headers) != 1:
        return False
    scheme, _, value = headers[0].strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode("utf-8", errors="replace").partition(":")[2]
        except binascii.Error:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(value.encode(errors="replace"), token.encode())


HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TAGGED: Final = {**HEADERS, "Vary": "Authorization, Accept-Encoding"}
"""Headers of answers with a tag: no cache stores them, but a client that has one may ask whether it has changed."""
_PACKED_FROM: Final = 16_384
_PIECE_BYTES: Final = 65_536


class Packed(Struct, frozen=True, kw_only=True):
    """A text as it is sent. `packed`: with gzip; empty: it is too short for that."""

    plain: bytes
    tag: str
    packed: bytes = b""


def packed(value: Any) -> Packed:
    """Return a value as JSON, harmless on a terminal. Slow work is done once here, not for each reader."""
    if isinstance(value, dict):
        return packed_text(json_text(value))
    try:
        return packed_text(ascii_json(msgspec.json.encode(value).decode()) + "\n")
    except UnicodeEncodeError:  # half a surrogate pair, which the standard library can write
        return packed_text(json.dumps(msgspec.to_builtins(value)) + "\n")


def packed_text(text: str) -> Packed:
    """A text as it is sent to many readers."""
    plain = text.encode(errors="replace")
    # An answer holds no part of a question and no secret: compressing reveals nothing.
    packed_bytes = gzip.compress(plain, compresslevel=1, mtime=0) if len(plain) >= _PACKED_FROM else b""
    return Packed(plain=plain, tag=f'"{hashlib.sha256(plain).hexdigest()[:32]}"', packed=packed_bytes)


def plain(status: int, text: str) -> web.Response:
    """A line of ours."""
    return web.Response(status=status, text=f"{text}\n", headers=HEADERS)


def document(body: Mapping[str, Any], status: int = HTTPStatus.OK) -> web.Response:
    """A small JSON document, as it is now."""
    text = ascii_json(json.dumps(body, ensure_ascii=False, indent=1))
    return web.Response(status=status, text=f"{text}\n", content_type="application/json", headers=HEADERS)


def fault(status: int, error: str, todo: str) -> web.Response:
    """Return an error with its remedy as JSON."""
    return document({"error": error, "todo": todo}, status)


class _Pieces(Payload):
    """A body that is sent piece by piece: only what is under way is copied for a slow reader."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._size = len(data)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return str(self._value, encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for start in range(0, self._size or 0, _PIECE_BYTES):
            await writer.write(self._value[start : start + _PIECE_BYTES])


def tagged(
    request: web.BaseRequest,
    content: Packed,
    headers: Mapping[str, str] | None = None,
    *,
    content_type: str = "application/json",
    status: int = HTTPStatus.OK,
) -> web.Response:
    """The text, packed where the reader can unpack it; 304 where the reader has it already."""
    sent = {**_TAGGED, **(headers or {}), "ETag": content.tag}
    known = (each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(","))
    if content.tag in known and status == HTTPStatus.OK:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=sent)
    codings = (each.partition(";")[0].strip() for each in request.headers.get("Accept-Encoding", "").split(","))
    body = content.plain
    if content.packed and "gzip" in codings:
        sent["Content-Encoding"], body = "gzip", content.packed
    return web.Response(status=status, body=_Pieces(body), content_type=content_type, charset="utf-8", headers=sent)


class ReaderLimits(Struct, frozen=True, kw_only=True):
    """The most of each, in all and of one address; seconds for an answer, for a request, and of a stream."""

    connections: int = 512
    connections_of_one: int = 128
    requests: int = 64
    requests_of_one: int = 32
    streams: int = 256
    streams_of_one: int = 64
    answer_s: float = 120.0
    idle_s: float = 30.0
    stream_s: float = 3600.0


class TooMany(Exception):
    """No slot is free. `status`: 429 if those of the address are taken, 503 if all are. `str()`: the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Slots:
    """So many of something at once, and of one address."""

    def __init__(self, noun: str, most: int, most_of_one: int) -> None:
        self._noun, self._most, self._most_of_one = noun, most, most_of_one
        self._counts: Counter[str] = Counter()

    @contextmanager
    def slot(self, address: str) -> Iterator[None]:
        """A slot until the block ends. Raises TooMany."""
        self.acquire(address)
        try:
            yield
        finally:
            self.release(address)

    def acquire(self, address: str) -> None:
        """Take a slot. Raises TooMany. An empty address may have all there are."""
        if address and self._counts[address] >= self._most_of_one:
            why = f"there are {self._most_of_one} {self._noun} of your address already"
            raise TooMany(HTTPStatus.TOO_MANY_REQUESTS, why)
        if self._counts.total() >= self._most:
            raise TooMany(HTTPStatus.SERVICE_UNAVAILABLE, f"there are {self._most} {self._noun} already")
        self._counts[address] += 1

    def release(self, address: str) -> None:
        """Give a slot back."""
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]


def address_of(transport: asyncio.BaseTransport | None) -> str:
    """Return one reader's address as the socket has it: IPv4, or 64 bits of IPv6; empty: a Unix socket."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or ip_network((address, 64), strict=False))
    return str(address)
