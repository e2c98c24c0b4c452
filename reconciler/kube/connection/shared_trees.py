"""Lists of many clusters as trees that share equal parts.

A thousand objects in each of a hundred clusters are a hundred thousand bodies, each of ten kilobytes as a tree. Nearly
all of it is the same in all clusters: templates, labels, owned fields. It is kept once while lists are read. Trees are
never written into, so a shared one behaves as any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import orjson

from reconciler.api.content import Json

_WHOLE_MAX: Final = 192
"""Bytes of JSON. A smaller value is shared as a whole; the parts of a larger one are shared as well, since a single
value, such as an image, may differ from cluster to cluster."""
_LEVELS_MAX: Final = 32
"""Below so many levels nothing is taken apart any more."""
_OPENED: Final = 3
"""Number of levels of a list's object that differ in each: the object, its metadata, the entries in managedFields."""

_members_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items_of = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SharedTrees:
    """Decoded values while lists are being read, by the digest of their JSON; empty between readings."""

    def __init__(self, apart_bytes: int = 0) -> None:
        """Nothing is kept. `apart_bytes`: so much of all lists shares nothing, which is quicker and takes memory."""
        self._apart_bytes = apart_bytes
        self._known: dict[bytes, Json] = {}
        self._lists = 0

    @property
    def kept(self) -> int:
        """Return the number of kept values."""
        return len(self._known)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A list is under way. With the end of the last one everything is forgotten."""
        self._lists += 1
        try:
            yield
        finally:
            self._lists -= 1
            if not self._lists:
                self._known = {}

    def list_answer(self, body: bytes) -> dict[str, Any] | None:
        """Return a list as `orjson.loads` decodes it, its items sharing equal parts.

        None: it is no list, or no JSON, or is not to be shared.
        """
        self._apart_bytes -= len(body)
        if self._apart_bytes >= 0:
            return None
        try:
            parts = _members_of(body)
            items = [self._restored(item, 1) for item in _items_of(parts.pop("items"))]
            return {**{key: orjson.loads(memoryview(value)) for key, value in parts.items()}, "items": items}
        except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
            return None

    def _restored(self, data: msgspec.Raw, level: int) -> Json:
        """A value that is another one in each object, whose members may be the same."""
        first = memoryview(data)[0]
        if level > _OPENED or first not in (_BRACE, _BRACKET):
            return self._tree(data, level)
        if first == _BRACKET:
            return [self._restored(item, level) for item in _items_of(data)]
        found: dict[str, Any] = {}
        for key, value in _members_of(data).items():
            if key in ("metadata", "managedFields"):
                found[key] = self._restored(value, level + 1)
            elif key in ("uid", "resourceVersion"):
                found[key] = orjson.loads(memoryview(value))
            else:
                found[key] = self._tree(value, level)
        return found

    def _tree(self, data: msgspec.Raw, level: int) -> Json:
        key = hashlib.blake2b(data, digest_size=16).digest()
        found = self._known.get(key, _NOT_KNOWN)
        if found is _NOT_KNOWN:
            found = self._known[key] = self._decoded(data, level)
        return found

    def _decoded(self, data: msgspec.Raw, level: int) -> Json:
        view = memoryview(data)
        if len(view) > _WHOLE_MAX and level < _LEVELS_MAX:
            if view[0] == _BRACE:
                return {key: self._tree(value, level + 1) for key, value in _members_of(data).items()}
            if view[0] == _BRACKET:
                return [self._tree(item, level + 1) for item in _items_of(data)]
        return orjson.loads(view)


_NOT_KNOWN: Final = object()
_BRACE, _BRACKET = b"{["
