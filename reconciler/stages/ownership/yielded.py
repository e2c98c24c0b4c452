"""Fields that others control in our place: the replicas that an autoscaler chose.

Source: design#autoscaled-replicas; server-side apply: a field that is left out stays if another manager owns it too,
and falls back to its default if nobody else does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconciler.interpreters.registry import Registry
from reconciler.interpreters.replicas import REPLICAS
from reconciler.model.plan import Manifest
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig, with_value, without
from reconciler.stages.ownership.field_path import path_text
from reconciler.stages.ownership.managed_fields import entries_of, managers_of, paths_of

Path = tuple[str, ...]


class Yielded(NamedTuple):
    """`body`: to be sent. `paths`: field paths of it that are never compared."""

    body: JsonObject
    paths: tuple[str, ...]


def replicas_path(identity: Identity, interpreters: Registry) -> Path:
    """Return the path of the kind's replicas; `spec.replicas` for a kind without interpreter."""
    return interpreters.of(*identity[:2]).replicas_path or REPLICAS


def yielded(body: JsonObject, live: JsonObject, path: Path, manager: str) -> Yielded:
    """Return `body` for an object whose live replicas others control. `path`: of the kind's replicas.

    A field that another manager owns is left out, and stays. While we are its only owner it is sent as it is live,
    since leaving it out would reset it to 1.
    """
    paths = tuple(dict.fromkeys((path, *_scaled_paths(live))))
    for found in paths:
        if managers_of(live, found) - {manager}:
            body = without(body, found)
        elif (current := dig(live, *found)) is not None:
            body = with_value(body, found, current)
    return Yielded(body, tuple(map(path_text, paths)))


def with_live_replicas(manifest: Manifest, live: JsonObject, path: Path) -> JsonObject:
    """Return the body of an object that replaces `live`, with the live replicas.

    `path`: of the kind's replicas.
    """
    current = dig(live, *path) if manifest.replicas_yielded else None
    return manifest.body if current is None else with_value(manifest.body, path, current)


def steady_path(body: JsonObject, live: JsonObject, path: Path) -> Path:
    """The path of replicas that are sent only so that they stay as they were seen; empty: none are, or they change."""
    sent = dig(body, *path)
    return path if sent is not None and sent == dig(live, *path) else ()


def _scaled_paths(live: JsonObject) -> Iterator[Path]:
    """Yield the fields written through the scale subresource; custom kinds choose the field."""
    for entry in entries_of(live):
        if entry.get("subresource") == "scale":
            for path in paths_of(entry["fieldsV1"]):
                steps = tuple([step for step in path if isinstance(step, str)])
                if len(steps) == len(path) > 1 and steps[0] != "status":
                    yield steps
