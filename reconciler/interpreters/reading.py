"""Typed reads of bodies that may hold anything: a value of the wrong type reads as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.model.tree import Json, JsonObject, dig

EMPTY: Mapping[str, Any] = {}


def mapping(value: Json) -> Mapping[str, Any]:
    """The value when it is a mapping, else an empty one."""
    # A dict first: the check against the abstract class costs five times as much.
    return value if isinstance(value, (dict, Mapping)) else EMPTY


def mappings(value: Json) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings of a list with their indexes; nothing when it is no list."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, Mapping)):
                yield index, item


def text(value: Json) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


COUNT_MAX = 2**31 - 1
"""The limit of counts in API servers."""


def count(value: Json, default: int) -> int:
    """The value when it is a count that an API server may store, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX else default


def namespace_of(body: JsonObject) -> str:
    """Return metadata.namespace, empty if missing."""
    return text(dig(body, "metadata", "namespace"))


def condition(live: JsonObject, kind: str) -> Mapping[str, Any]:
    """Return the entry of status.conditions with this type, empty if missing."""
    for _, entry in mappings(dig(live, "status", "conditions")):
        if entry.get("type") == kind:
            return entry
    return EMPTY


def status_count(live: JsonObject, *names: str) -> int | None:
    """The first of the counts of the status that is there, else 0; None before a controller has seen the object."""
    if not has_report(live):
        return None
    status = mapping(live.get("status"))
    return next((count(status[name], 0) for name in names if name in status), 0)


def has_report(live: JsonObject) -> bool:
    """Return whether a controller has ever reported a generation."""
    return "observedGeneration" in mapping(live.get("status"))


def is_observed(live: JsonObject) -> bool:
    """Return whether the controller has seen the newest spec: status.observedGeneration is metadata.generation."""
    generation = dig(live, "metadata", "generation")
    return generation is None or bool(dig(live, "status", "observedGeneration") == generation)
