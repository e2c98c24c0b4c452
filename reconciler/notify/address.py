"""Addresses of an operator, and their form without secrets.

A webhook's path and query are often its whole protection, so no output holds more than the host.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct

from reconciler.errors import ConfigurationError
from reconciler.secret_files import is_loopback


class Address(Struct, frozen=True, kw_only=True):
    """The address of a receiver. `str()` and `repr()` are fit for any output. `name`: of the receiver, among others."""

    url: str
    name: str

    @property
    def key(self) -> str:
        """Return the key in the journal: another address is another receiver."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Address({self.name})"


def addresses(urls: Iterable[str], *, allows_http: bool) -> tuple[Address, ...]:
    """Each URL once, with a name that no other has: its host, and a number where several have the same.

    Raises:
        ConfigurationError: one is no URL of HTTP, or leads over plain HTTP to another machine.
    """
    found: dict[str, Address] = {}
    taken: dict[str, int] = {}
    for url in urls:
        if url in found:
            continue
        host = checked_host(url, allows_http=allows_http, option="--webhook")
        taken[host] = taken.get(host, 0) + 1
        found[url] = Address(url=url, name=host if taken[host] == 1 else f"{host} ({taken[host]})")
    return tuple(found.values())


def checked_host(url: str, *, allows_http: bool, option: str) -> str:
    """The host and port of a URL.

    Raises:
        ConfigurationError: as `addresses`; the message holds no more of it than the host.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if not host or parts.scheme not in ("https", "http") or not url.isprintable() or " " in url:
        raise ConfigurationError(f"{option}: the address has to be a URL that begins with https://")
    shown = f"[{host}]" if ":" in host else host
    shown = f"{shown}:{port}" if port is not None else shown
    if parts.scheme == "http" and not allows_http and not is_loopback(host):
        raise ConfigurationError(
            f"{option}: http://{shown} would be told in clear text; use https://, or allow it with --allow-plain-http"
        )
    return shown
