"""The relation of a store's revisions to its head."""

from __future__ import annotations

from msgspec import Struct


class Lineage(Struct, frozen=True, kw_only=True):
    """Revisions that were asked for, beside a head.

    `order`: those that are the head or its ancestors, and the head itself, the oldest first. One that is not in it is
    none, or is so old that it was not looked for any further.
    `missing`: those that the store does not have, or that cannot be read.
    """

    order: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
