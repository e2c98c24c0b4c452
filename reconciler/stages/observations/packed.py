"""Placements as a text that fits into an object: equal ones stand there once.

Source: ADR 20: the marks of an unreachable cluster cannot report placements to the next leader. If not all fit, those
on one cluster are kept, since they would be placed a second time.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from reconciler.model.binding import PreviousPlacement, TargetCluster
from reconciler.model.refs import Identity

BYTES_MAX: Final = 64 * 2**20
"""Limit of the unpacked size: who can write the ConfigMap must not fill the memory."""


def packed_placements(placements: Mapping[Identity, PreviousPlacement], bytes_max: int) -> str:
    """As text of at most so many bytes; empty where not even those on one cluster fit."""
    single = {identity: found for identity, found in placements.items() if len(found.targets) == 1}
    for chosen in (placements, single):
        text = pack_placements(chosen)
        if len(text) <= bytes_max:
            return text
    return ""


def read_placements(text: str) -> dict[Identity, PreviousPlacement]:
    """Return the unpacked placements. Malformed ones are left out."""
    found = unpack(text, BYTES_MAX)
    if not isinstance(found, dict):
        return {}
    placements: dict[Identity, PreviousPlacement] = {}
    alike, rows = found.get("alike"), found.get("placed")
    if not isinstance(alike, list) or not isinstance(rows, list):
        return {}
    for row in rows:
        # Another version may have written it, or a person.
        with suppress(TypeError, ValueError, IndexError):
            *names, group, index = row
            identity = Identity(*map(_text, names))
            targets = tuple(TargetCluster(_text(cluster), _replicas(count)) for cluster, count in alike[index])
            if targets:
                placements[identity] = PreviousPlacement(identity=identity, targets=targets, affinity_name=_text(group))
    return placements


def pack_placements(placements: Mapping[Identity, PreviousPlacement]) -> str:
    """All of them, as text."""
    alike: dict[tuple[TargetCluster, ...], int] = {}
    rows = [
        (*identity, found.affinity_name, alike.setdefault(found.targets, len(alike)))
        for identity, found in sorted(placements.items())
    ]
    lists = [[tuple(target) for target in targets] for targets in alike]
    return pack({"alike": lists, "placed": rows})


def pack(tree: Any) -> str:
    """A JSON tree as text for a field of an object."""
    return base64.b64encode(zlib.compress(orjson.dumps(tree))).decode()


def unpack(text: str, bytes_max: int) -> Any:
    """Return the tree; None: invalid, or larger than that. A writer of the object must not fill the memory."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), bytes_max)
        return orjson.loads(data) if unpacker.eof else None
    except (binascii.Error, zlib.error, ValueError):
        return None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _replicas(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise TypeError
    return value
