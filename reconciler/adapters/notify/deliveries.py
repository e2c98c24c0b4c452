"""The deliveries to one receiver."""

from __future__ import annotations

from msgspec import Struct


class Deliveries(Struct, kw_only=True):
    """Counts since the start. `failed`: attempts; `dropped`: events.

    `pending`: waiting events, `oldest_at`: the time of the oldest one (RFC 3339; empty: none). `is_gone`: the receiver
    will never take any more. `why`: the last error.
    """

    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    oldest_at: str = ""
    is_gone: bool = False
    why: str = ""
