"""Fields that only an API server or a controller writes: never sent to a member.

Source: Karmada: fields pruned from a template before it is sent. In addition the last-applied annotation of kubectl
goes, which holds a stale copy of the whole object (of a Secret: its values).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from reconciler.interpreters.cluster_fields import without_cluster_fields
from reconciler.model.tree import JsonObject, dig, with_value, without

SERVER_METADATA: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def prune_server_fields(body: JsonObject) -> JsonObject:
    """Return the body without status, server-written metadata and fields of the cluster; itself if it has none."""
    pruned = without_cluster_fields(body)  # While it still shows that it was exported.
    if "status" in pruned:
        pruned = without(pruned, ("status",))
    metadata = pruned.get("metadata")
    if isinstance(metadata, (dict, Mapping)) and not SERVER_METADATA.isdisjoint(metadata):
        kept = {key: value for key, value in metadata.items() if key not in SERVER_METADATA}
        pruned = {**pruned, "metadata": kept}
    return without_annotations(pruned, (LAST_APPLIED,))


def without_annotations(body: JsonObject, keys: Collection[str]) -> JsonObject:
    """The body without these annotations; an annotation map that becomes empty goes too."""
    return without_entries(body, ("metadata", "annotations"), keys)


def without_entries(body: JsonObject, steps: tuple[str, ...], keys: Collection[str]) -> JsonObject:
    """The body without these keys of the map at the steps; a map that becomes empty goes too."""
    entries = dig(body, *steps)
    if not entries or not isinstance(entries, (dict, Mapping)) or entries.keys().isdisjoint(keys):
        return body
    kept = {key: value for key, value in entries.items() if key not in keys}
    return with_value(body, steps, kept) if kept else without(body, steps)
