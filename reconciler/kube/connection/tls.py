"""TLS contexts of clusters that trust the same authorities and know us by the same certificate: one for all of them.

A context with the authorities of the system takes 0.8 MiB and 19 ms, one with a single authority some 20 KiB.

The buffers of TLS connections: a watch is one that is silent nearly always, and a large fleet has hundreds.

asyncio gives each connection a buffer of 256 KiB, which is as much memory as all else that a watch takes, five times
over. A record of TLS is at most 16 KiB (RFC 8446, section 5.1), and no read gives more than one.
"""

from __future__ import annotations

import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary


class SharedContexts:
    """TLS contexts in use, by a digest of their parts."""

    def __init__(self) -> None:
        """None is in use."""
        self._contexts: WeakValueDictionary[bytes, ssl.SSLContext] = WeakValueDictionary()

    def of(
        self, parts: Iterable[bytes], make: Callable[[], ssl.SSLContext], *, is_anew: bool = False
    ) -> ssl.SSLContext:
        """Return the context of these parts, made if nobody uses one. `is_anew`: in any case, to end its connections.

        `parts`: everything that distinguishes it, the expected name of the server among them: a connection that was
        opened under one name must not serve a cluster with another one.
        """
        digest = sha256()
        for part in parts:
            digest.update(b"%d:" % len(part))
            digest.update(part)
        found = self._contexts.get(digest.digest())
        if found is None or is_anew:
            found = self._contexts[digest.digest()] = make()
        return found


def system_authorities() -> bytes:
    """Return a stamp of the system's authorities: their paths and modification times."""
    paths = ssl.get_default_verify_paths()
    told = []
    for path in filter(None, (paths.cafile, paths.capath)):
        try:
            told.append(f"{path} {Path(path).stat().st_mtime_ns}")
        except OSError:
            told.append(path)
    return "\n".join(told).encode()


TLS_BUFFER_BYTES: Final = 16 * 1024
"""Of each connection. A record that does not fit comes in two reads."""


def keep_tls_buffers_small() -> None:
    """Give connections that are opened from now on, in the whole process, buffers of that size."""
    SSLProtocol.max_size = min(SSLProtocol.max_size, TLS_BUFFER_BYTES)
