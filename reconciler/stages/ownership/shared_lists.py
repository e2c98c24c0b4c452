"""Lists that are one value for API servers although others append to them: their entries stay in our requests.

A controller that adds its pull secret to every ServiceAccount would otherwise be undone, and would undo us, for ever;
so would an API server, which adds tolerations to every Pod. Source: Karmada: the lists of a ServiceAccount are merged
with the member's; here an entry that leaves the store leaves all the same, since the earlier declaration is known.
Kubernetes: admission plugins DefaultTolerationSeconds and ExtendedResourceToleration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconciler.model.refs import Identity
from reconciler.model.tree import Json, JsonObject, dig, with_value
from reconciler.stages.ownership.managed_fields import fields_of, owns_within

Path = tuple[str, ...]

_SHARED: Final[Mapping[tuple[str, str], tuple[Path, Path]]] = {
    ("", "ServiceAccount"): (("imagePullSecrets",), ("name",)),
    ("", "Pod"): (("spec", "tolerations"), ("key", "operator", "value", "effect")),
}
"""(group, kind) to the path of the list and the fields that name its entries. Every other atomic value is healed as
a whole: permissions (`subjects`, `rules`) belong to the store alone."""


def shared_list(identity: Identity) -> Path:
    """The path of the list that others may append to; empty when the kind has none."""
    return _SHARED.get(identity[:2], ((), ()))[0]


def with_entries_of_others(
    identity: Identity, body: JsonObject, live: JsonObject, previous: JsonObject | None, manager: str
) -> JsonObject:
    """Return the body with the entries that others added to its list in `live`; itself if there are none.

    `previous`: the earlier declaration; an entry of it is ours, and goes when the body lacks it. Without a list in the
    body nothing is added, unless the live one is or was ours as a whole, and would go with all its entries.
    """
    path, key = _SHARED.get(identity[:2], ((), ()))
    found = _entries(dig(live, *path), key) if path else {}
    wanted = _entries(dig(body, *path), key) if path else {}
    before = _entries(dig(previous, *path), key) if path else {}
    if not found or not (wanted or before or owns_within(fields_of(live, manager), path)):
        return body
    ours = wanted.keys() | before.keys()
    if found.keys() <= ours:
        return body
    there = [wanted.get(name, entry) for name, entry in found.items() if name in wanted or name not in ours]
    return with_value(body, path, [*there, *(entry for name, entry in wanted.items() if name not in found)])


def _entries(items: Json, key: Path) -> dict[tuple[Json, ...], Any]:
    """Entries by their name; none when it is no list, or one of them has no name of its own."""
    entries = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    names = (tuple(item.get(field) for field in key) for item in entries)
    named = {
        name: item
        for name, item in zip(names, entries, strict=True)
        if any(name) and all(part is None or isinstance(part, str) for part in name)
    }
    return named if isinstance(items, list) and len(named) == len(items) else {}
