"""Addresses and secrets of an operator, and their form without secrets.

A webhook's path and query are often its whole protection, so no output holds more than the host. Secrets are read from
files each time that they are needed, so that a renewed one is used at once. Source: systemd.exec, "Credentials".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from reconciler.errors import ConfigurationError


class Address(Struct, frozen=True, kw_only=True):
    """The address of a receiver. `str()` and `repr()` are fit for any output. `name`: of the receiver, among others."""

    url: str
    name: str

    @property
    def key(self) -> str:
        """Return the key in the journal: another address is another receiver."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        """The host, and no more."""
        return self.name

    def __repr__(self) -> str:
        """As `str`."""
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


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_BYTES_MAX: Final = 65_536


def secret_file(named: Path | None, credential: str, environ: Mapping[str, str]) -> Path | None:
    """The file that was named, else the credential of that name; None: there is neither."""
    if named is not None:
        return named
    folder = environ.get("CREDENTIALS_DIRECTORY")
    found = Path(folder) / credential if folder else None
    return found if found is not None and found.is_file() else None


def read_secret(path: Path) -> str:
    """Return the content of the file, without blanks around it.

    Raises:
        ConfigurationError: it cannot be read, or is empty.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX).decode("utf-8", errors="replace").strip()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}; it was named to tell others") from error
    if not text:
        raise ConfigurationError(f"{path}: it is empty; it was named to tell others")
    return text
