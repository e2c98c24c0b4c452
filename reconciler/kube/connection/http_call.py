"""A request as a session sends it, the fault that a session raises, and the proxy on the way to a cluster.

Nothing here imports aiohttp, which takes a seventh of a short command.

The proxy is that of the kubeconfig, else that of the environment, as for kubectl.
"""

from __future__ import annotations

import os
import ssl
import sys
from contextlib import suppress
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from msgspec import Struct

from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.secret_files import is_loopback

_SECONDS_DIGITS = 12


class Call(Struct, frozen=True, kw_only=True):
    """One request. `url` is encoded as it is sent; `tls`: for `https:`; `silence_s`: an answer may pause so long."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: str = ""
    connect_s: float
    silence_s: float | None = None
    pool: int = 0
    """Of connections that may be used again; one of another pool never is."""


class SessionFault(Exception):
    """There is no answer, or no whole one.

    `is_sent` False: the server did not get the request. `is_timeout`: nothing came in time. `is_cut_off`: the body
    ended too early. `is_about_certificates`: TLS failed. `errno`: of the system's error, if it was one.
    """

    def __init__(
        self,
        message: str,
        *,
        is_sent: bool = True,
        is_timeout: bool = False,
        is_cut_off: bool = False,
        is_about_certificates: bool = False,
        errno: int | None = None,
    ) -> None:
        """`message`: the error in the words of the library or the system."""
        super().__init__(message)
        self.is_sent = is_sent
        self.is_timeout = is_timeout
        self.is_cut_off = is_cut_off
        self.is_about_certificates = is_about_certificates
        self.errno = errno


def reason(error: BaseException, place: str = "") -> str:
    """Return the error in words: the system's own for a connection, with the place (`host:port`) if there is one."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower() + (f" by {place}" if place else "")
    return str(error) or type(error).__name__


def retry_after_s(value: str, now_s: float) -> float | None:
    """Return the seconds of a Retry-After header, in either form; None: it tells none. Source: RFC 9110, 10.2.3."""
    if value.isdecimal() and value.isascii():
        return float(value[:_SECONDS_DIGITS])
    try:
        moment = parsedate_to_datetime(value)
        return max(0.0, moment.timestamp() - now_s) if moment.tzinfo is not None else None
    except (ValueError, TypeError, OverflowError):
        return None


def proxy_of(config: MemberConfig) -> str:
    """The proxy on the way to the cluster, empty: none. The address of the pod's own cluster is known inside alone."""
    return "" if config.is_in_cluster else config.proxy_url or proxy_of_environment(config.server)


def proxy_of_environment(server: str) -> str:
    """The proxy that HTTPS_PROXY and NO_PROXY name for the server, as for kubectl; loopback never has one."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    is_named = sys.platform != "linux" or any(name.lower().endswith("_proxy") for name in os.environ)
    if is_loopback(host) or not is_named:
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 10 ms that few need

    if proxy_bypass(host) or _is_in_bypassed_network(host, getproxies().get("no", "")):
        return ""
    return getproxies().get(parts.scheme, "")


def _is_in_bypassed_network(host: str, bypassed: str) -> bool:
    """Return whether NO_PROXY has a network (10.0.0.0/8) of the address. The standard library knows only names."""
    with suppress(ValueError):
        address = ip_address(host)
        for entry in bypassed.split(","):
            with suppress(ValueError):
                if "/" in entry and address in ip_network(entry.strip(), strict=False):
                    return True
    return False
