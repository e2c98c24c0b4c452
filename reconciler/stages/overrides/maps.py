"""labelsOverrider and annotationsOverrider: entries of the object's own metadata.

Source: Karmada: add creates the map and sets entries; replace and remove leave absent keys alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.override import MapOverrider, OverrideOperator
from reconciler.model.tree import JsonObject, Step, dig, with_value
from reconciler.stages.overrides.edit import Edit


def edit_map(body: JsonObject, overrider: MapOverrider, field: str) -> Edit:
    """The body with `metadata.labels` or `metadata.annotations` changed."""
    written = dig(body, "metadata", field)
    current = written if isinstance(written, Mapping) else {}
    wanted = dict(current)
    for key, value in overrider.values:
        if overrider.operator is OverrideOperator.ADD or (
            overrider.operator is OverrideOperator.REPLACE and key in current
        ):
            wanted[key] = value
        elif overrider.operator is OverrideOperator.REMOVE:
            wanted.pop(key, None)
    if wanted == current:
        return Edit(body)
    keys = sorted(key for key in {*current, *wanted} if current.get(key) != wanted.get(key))
    changed: tuple[tuple[Step, ...], ...] = tuple(("metadata", field, key) for key in keys)
    return Edit(with_value(body, ("metadata", field), wanted), changed)
