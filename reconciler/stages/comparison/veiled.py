"""A change that says whether its values are secret, or were when they were last written."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.ledger import AppliedRow
from reconciler.model.plan import Change, Manifest
from reconciler.stages.diff import Bodies
from reconciler.stages.ownership import holds_hashes, is_marked_encrypted


def veiled(change: Change, manifest: Manifest, row: AppliedRow | None, bodies: Bodies) -> Change:
    """The change, marked where values of it were encrypted in the store, with what the journal may keep of it.

    What was encrypted before and is not any more is still in the cluster, and in what differs.
    """
    leaves = manifest.leaves
    if leaves and change.manifest is not None:
        kept = bodies.recorded(change.declared or change.manifest, leaves)
        return replace(change, is_sealed=True, declared=kept)
    if manifest.identity[:2] == ("", "Secret"):
        return change
    was_sealed = row is not None and holds_hashes(row.recorded)
    is_marked = change.before is not None and is_marked_encrypted(change.before)
    return replace(change, is_sealed=True) if was_sealed or is_marked else change
