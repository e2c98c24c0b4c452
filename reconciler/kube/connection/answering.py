"""One answer over a connection, taken apart by httptools (the parser of Node.js) as it comes in."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, Protocol

import httptools

from reconciler.kube.connection.session import SessionFault

BARREN_BYTES_MAX: Final = 64 * 1024
"""So much may come in that is no body: lines of a head, of its trailers, or about chunks."""
HELD_BYTES_MAX: Final = 256 * 1024
"""Limit of unread body data; the connection is not read before they are taken."""
PIECE_BYTES: Final = 256 * 1024
"""A piece of a compressed body is taken out in pieces no larger than this, so that each is counted before the next."""
_GZIP = 16 + zlib.MAX_WBITS
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Inflate(Protocol):
    """A decompressor of zlib."""

    @property
    def unconsumed_tail(self) -> bytes:
        """Return the rest that did not fit into the last piece."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most so many bytes."""


class Headers(dict[str, str]):
    """By lower-case name; asked for by any."""

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override] # every value is a text
        """The value, or the default."""
        return super().get(name.lower(), default)


class Answering:
    """The answer to one request: its head, its body as it comes, and how it ended."""

    def __init__(self, pause: Callable[[bool], None], drop: Callable[[], None], silence_s: float | None) -> None:
        """`pause`: stop or continue reading the connection; `drop`: close it."""
        self.status = 0
        self.headers: Mapping[str, str] = Headers()
        self.content = self
        self.has_begun = False
        """Something has come in."""
        self.is_complete = False
        self.may_stay = False
        """The connection may be used for another request."""
        self._parser = httptools.HttpResponseParser(self)
        self._pause, self._drop, self._silence_s = pause, drop, silence_s
        self._found = Headers()
        self._pieces: deque[bytes] = deque()
        self._held = self._barren = 0
        self._has_head = self._is_paused = self._ends_with_connection = False
        self._fault: SessionFault | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Wait for status and headers. Raises SessionFault."""
        while not self._has_head:
            if self._fault is not None:
                raise self._fault
            await self._more()

    async def iter_any(self) -> AsyncIterator[bytes]:
        """See Content."""
        coding = self.headers.get("content-encoding", "")
        if coding not in ("", "identity", "gzip"):
            raise SessionFault("the answer is compressed in a way that was not asked for")
        inflate = zlib.decompressobj(_GZIP) if coding == "gzip" else None
        while True:
            while not self._pieces:
                if self._fault is not None:
                    raise self._fault
                if self.is_complete:
                    if inflate is not None and (not inflate.eof or inflate.unused_data):
                        raise SessionFault("the compressed answer is not whole", is_cut_off=True)
                    return
                await self._more()
            piece = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._held = 0
            if inflate is None:
                yield piece
            else:
                for part in _inflated(inflate, piece):
                    yield part
            if self._is_paused:
                self._is_paused = False
                self._pause(False)

    def hang_up(self) -> None:
        """See Response."""
        if not self.is_complete:
            self._drop()

    def feed(self, data: bytes) -> None:
        """Parse data of the connection."""
        self.has_begun = True
        held = self._held
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(SessionFault(f"the answer is no HTTP: {error}"))
            return
        if self._held > held or self.is_complete:
            self._barren = 0
        else:
            self._barren += len(data)
            if self._barren > BARREN_BYTES_MAX:
                self.fail(SessionFault(f"the head of the answer is larger than {BARREN_BYTES_MAX:,} bytes"))
                return
        if self._held > HELD_BYTES_MAX and not self._is_paused and not self.is_complete:
            self._is_paused = True
            self._pause(True)
        self._wake()

    def end(self, error: Exception | None) -> None:
        """The connection has ended, and how."""
        if self.is_complete or self._fault is not None:
            return
        if self._ends_with_connection and error is None:
            self.is_complete = True
            self._wake()
        elif self._has_head:
            self.fail(SessionFault("Response payload is not completed", is_cut_off=True))
        else:
            errno = error.errno if isinstance(error, OSError) else None
            self.fail(SessionFault(str(error) if error is not None else "Server disconnected", errno=errno))

    def fail(self, fault: SessionFault) -> None:
        """Nothing more of it is of use."""
        self._fault = self._fault or fault
        self._drop()
        self._wake()

    async def _more(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._silence_s if self._has_head else None):
                await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Callbacks of httptools. It would wrap exceptions, so none is raised here.

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is not kept."""
        if not self._has_head:
            self._found[name.decode("ascii", "replace").lower()] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        """Handle the whole head. A 1xx is followed by another one."""
        status = self._parser.get_status_code()
        if status < HTTPStatus.OK:
            self._found.clear()
            return
        found = self._found
        self.status, self.headers, self._has_head = status, found, True
        has_length = "content-length" in found or "chunked" in found.get("transfer-encoding").lower()
        self._ends_with_connection = not has_length and status not in _WITHOUT_BODY

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if body and not self.is_complete:
            self._pieces.append(body)
            self._held += len(body)

    def on_message_complete(self) -> None:
        """Handle the end of the message. Later data were not requested."""
        if self._has_head:
            self.may_stay = not self.is_complete and self._parser.should_keep_alive()
            self.is_complete = True

    def on_message_begin(self) -> None:
        """A second answer to one request: the connection is of no further use."""
        if self.is_complete:
            self.may_stay = False


def _inflated(inflate: Inflate, piece: bytes) -> Iterator[bytes]:
    try:
        while piece:
            part = inflate.decompress(piece, PIECE_BYTES)
            piece = inflate.unconsumed_tail
            if part:
                yield part
    except zlib.error as error:
        raise SessionFault(f"the compressed answer is broken: {error}", is_cut_off=True) from error
