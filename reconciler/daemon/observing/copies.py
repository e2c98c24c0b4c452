"""Which clusters hold a copy of each object, kept up from one reading of the ledger to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.ledger import Ledger
from reconciler.model.refs import Identity
from reconciler.stages.incremental import patched

Copies = Mapping[Identity, frozenset[str]]


def copies_since(copies: Copies, before: Ledger, after: Ledger) -> Copies:
    """The copies of `after`, made from those of `before`; clusters whose rows are the same mapping are not searched."""
    changes: dict[Identity, frozenset[str]] = {}
    for cluster, old, new in _differing(before, after):
        for identity in old.keys() ^ new.keys():
            known = changes[identity] if identity in changes else copies.get(identity, frozenset())
            changes[identity] = known | {cluster} if identity in new else known - {cluster}
    return patched(copies, {identity: clusters or None for identity, clusters in changes.items()})


def left_since(before: Ledger, after: Ledger) -> set[Identity]:
    """Return objects that lost a copy."""
    return {identity for _, old, new in _differing(before, after) for identity in old.keys() - new.keys()}


_Rows = Mapping[Identity, object]


def _differing(before: Ledger, after: Ledger) -> Iterator[tuple[str, _Rows, _Rows]]:
    for cluster in sorted({*before, *after}):
        old, new = before.get(cluster, {}), after.get(cluster, {})
        if old is not new:
            yield cluster, old, new
