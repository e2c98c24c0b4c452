"""The buffers of TLS connections: a watch is one that is silent nearly always, and a large fleet has hundreds.

asyncio gives each connection a buffer of 256 KiB, which is as much memory as all else that a watch takes, five times
over. A record of TLS is at most 16 KiB (RFC 8446, section 5.1), and no read gives more than one.
"""

from __future__ import annotations

from asyncio.sslproto import SSLProtocol
from typing import Final

TLS_BUFFER_BYTES: Final = 16 * 1024
"""Of each connection. A record that does not fit comes in two reads."""


def keep_tls_buffers_small() -> None:
    """Give connections that are opened from now on, in the whole process, buffers of that size."""
    SSLProtocol.max_size = min(SSLProtocol.max_size, TLS_BUFFER_BYTES)
