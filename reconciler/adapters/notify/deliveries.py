"""The deliveries to one receiver."""

from __future__ import annotations

from msgspec import Struct


class Deliveries(Struct, kw_only=True):
    """Counts since the start. `failed`: attempts; `dropped`: events that were given up.

    `pending`: how many wait now, `oldest_at`: since when the oldest of them does (RFC 3339; empty: none).
    `is_gone`: the receiver said that it will never take any more. `why`: what the last attempt failed for.
    """

    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    oldest_at: str = ""
    is_gone: bool = False
    why: str = ""
