"""Documents of clusters that follow an inventory: edits of a sync. Independent of requests."""

from reconciler.stages.inventory.message import commit_message
from reconciler.stages.inventory.profile import DEFAULT_PROPERTIES, Origin
from reconciler.stages.inventory.sync import Edit, EditKind, InventoryRefused, Synced, followed, synced

__all__ = [
    "DEFAULT_PROPERTIES",
    "Edit",
    "EditKind",
    "InventoryRefused",
    "Origin",
    "Synced",
    "commit_message",
    "followed",
    "synced",
]
