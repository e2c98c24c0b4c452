"""Limits of readers: connections, requests and streams, over all and of one address."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from msgspec import Struct

_SILENCE_MS: Final = 60_000
"""The kernel ends a connection whose reader takes nothing of what was sent for so long."""
_STREAM_BUFFER_BYTES: Final = 16_384


class ReaderLimits(Struct, frozen=True, kw_only=True):
    """The most of each, over all and of one address.

    `answer_s`: an answer is taken within it, else the connection ends. `idle_s`: so does one that sends no whole
    request. `stream_s`: a stream ends, and its reader opens the next one.
    """

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
        """None is taken. `noun`: in the plural."""
        self._noun, self._most, self._most_of_one = noun, most, most_of_one
        self._taken: Counter[str] = Counter()

    @contextmanager
    def slot(self, address: str) -> Iterator[None]:
        """A slot until the block ends. Raises TooMany."""
        self.take(address)
        try:
            yield
        finally:
            self.give_back(address)

    def take(self, address: str) -> None:
        """Take a slot. Raises TooMany. An empty address may have all there are."""
        if address and self._taken[address] >= self._most_of_one:
            why = f"there are {self._most_of_one} {self._noun} of your address already"
            raise TooMany(HTTPStatus.TOO_MANY_REQUESTS, why)
        if self._taken.total() >= self._most:
            raise TooMany(HTTPStatus.SERVICE_UNAVAILABLE, f"there are {self._most} {self._noun} already")
        self._taken[address] += 1

    def give_back(self, address: str) -> None:
        """Give a slot back."""
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def address_of(transport: asyncio.BaseTransport | None) -> str:
    """Return what counts as one reader: an IPv4 address, 64 bits of an IPv6 address; empty for a Unix socket.

    It is of whoever connects: headers name anybody.
    """
    peer = transport.get_extra_info("peername") if transport is not None else None
    if not isinstance(peer, tuple):
        return ""
    found = ip_address(peer[0].partition("%")[0])
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)


def end_if_not_read(transport: asyncio.BaseTransport) -> None:
    """Have the kernel end a connection whose reader takes nothing any more. Source: tcp(7), TCP_USER_TIMEOUT."""
    found = transport.get_extra_info("socket")
    if found is not None and found.family != socket.AF_UNIX and hasattr(socket, "TCP_USER_TIMEOUT"):
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_MS)


def keep_buffer_small(transport: asyncio.BaseTransport | None) -> None:
    """Have the kernel keep little of a stream whose reader falls behind."""
    found = transport.get_extra_info("socket") if transport is not None else None
    if found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _STREAM_BUFFER_BYTES)
