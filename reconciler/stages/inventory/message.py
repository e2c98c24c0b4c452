"""The message of a sync's commit: added, changed and retired clusters, and the meaning of retiring."""

from __future__ import annotations

from typing import Final

from reconciler.stages.inventory.profile import Origin
from reconciler.stages.inventory.sync import EditKind, Synced

_NAMES_MAX: Final = 200
_RETIRING: Final = """\
A cluster without a document is no member any more. Nothing is deleted there: what runs there stays as it is, and nobody
manages it. What policies place by replicas or by selection goes to the clusters that are left. To keep a cluster,
restore its document and take the annotation fleet.reconciler/inventory out of it.
"""


def commit_message(origin: Origin, made: Synced) -> str:
    """The message, subject first."""
    named = {kind: [edit.cluster for edit in made.edits if edit.kind is kind] for kind in EditKind}
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in named.items() if names)
    parts = [f"Sync clusters with {origin}: {counts or 'nothing to change'}\n"]
    told = [f"{kind.capitalize()}: {_listed(names)}\n" for kind, names in named.items() if names]
    parts += ["".join(told)] if told else []
    parts += [_RETIRING] if named[EditKind.RETIRED] else []
    return "\n".join(parts)


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMES_MAX
    return ", ".join(names[:_NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
