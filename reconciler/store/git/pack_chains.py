"""Objects that libgit2 unpacks with another one: the bases of its deltas, which its own header does not tell.

Source: gitformat-pack. A pack of half a megabyte can hold a base of hundreds, and a small file that differs from it.
"""

from __future__ import annotations

import mmap
import os
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

_VERSION_2: Final = b"\xfftOc\0\0\0\x02"
_NUMBER: Final = Struct(">I")
_LONG: Final = Struct(">Q")
_FAN: Final = 8
_NAMES: Final = _FAN + 256 * 4
_NAME_BYTES: Final = 20
_BY_OFFSET: Final = 6
_BY_NAME: Final = 7
_HEADER_BYTES: Final = 64
"""More than the type, a size and the place or name of a base."""
_DELTA_BYTES: Final = 4096
"""Of packed data: enough for the two sizes that a delta begins with."""
_FOLDERS_MAX: Final = 8
CHAIN_MAX: Final = 4_095
"""Git makes no longer chain of deltas."""


class PackedEntry(NamedTuple):
    """An entry of a pack: the size of its data and, of a delta, that of its result, and the place of its base."""

    size: int
    result_size: int = 0
    base: int | None = None


class Pack:
    """A pack and its index, of which only headers are read."""

    def __init__(self, index: Path) -> None:
        """Map both files. Raises OSError, ValueError: one cannot be read, or the index is not of version 2."""
        self._index, self._data = _mapped(index), _mapped(index.with_suffix(".pack"))
        if self._index[:_FAN] != _VERSION_2:
            raise ValueError(f"{index.name} is no index of version 2; `git repack -adf` writes one")

    def place(self, name: bytes) -> int | None:
        """Return the place of an object; None: it is not in this pack."""
        first, end, count = self._fan(name[0] - 1) if name[0] else 0, self._fan(name[0]), self._fan(255)
        at = bisect_left(range(count), name, first, end, key=self._name)
        if at == end or self._name(at) != name:
            return None
        places = _NAMES + count * (_NAME_BYTES + 4)
        place = self._number(places + 4 * at)
        if place >> 31:
            return int(_LONG.unpack_from(self._index, places + 4 * count + 8 * (place & 0x7FFFFFFF))[0])
        return place

    def entry(self, place: int) -> PackedEntry:
        """Return the entry at a place. Raises IndexError, zlib.error: it is cut off or corrupt."""
        header = self._data[place : place + _HEADER_BYTES]
        rest, at = _varint(header, 1) if header[0] & 0x80 else (0, 1)
        size, kind = header[0] & 0x0F | rest << 4, header[0] >> 4 & 7
        base: int | None
        if kind == _BY_OFFSET:
            back, at = _distance(header, at)
            base = place - back
        elif kind == _BY_NAME:
            base, at = self.place(header[at : at + _NAME_BYTES]), at + _NAME_BYTES
        else:
            return PackedEntry(size)
        sizes = zlib.decompressobj().decompress(self._data[place + at : place + at + _DELTA_BYTES], 20)
        return PackedEntry(size, _varint(sizes, _varint(sizes, 0)[1])[0], base)

    def chain(self, place: int) -> Iterator[PackedEntry]:
        """Yield an entry and the bases of it, at most one more than git makes."""
        at: int | None = place
        for _ in range(CHAIN_MAX + 2):
            if at is None:
                return
            entry = self.entry(at)
            yield entry
            at = entry.base

    def _number(self, at: int) -> int:
        return int(_NUMBER.unpack_from(self._index, at)[0])

    def _fan(self, byte: int) -> int:
        return self._number(_FAN + 4 * byte)

    def _name(self, at: int) -> bytes:
        return self._index[_NAMES + at * _NAME_BYTES : _NAMES + (at + 1) * _NAME_BYTES]


def packs_of(objects: str) -> Iterator[Pack]:
    """Yield the packs of a folder of objects and of those that it borrows from.

    Raises OSError, ValueError: one cannot be read.
    """
    pending, visited = [objects], set[str]()
    while pending:
        folder = pending.pop()
        if folder not in visited:
            visited.add(folder)
            yield from _packs_in(f"{folder}/pack", _modified_ns(f"{folder}/pack"))
            pending.extend(_borrowed(folder, _modified_ns(f"{folder}/info/alternates")))


def _modified_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked for each object, and a Path costs four times as much
    except FileNotFoundError:
        return 0


@lru_cache(maxsize=_FOLDERS_MAX)
def _packs_in(folder: str, modified_ns: int) -> tuple[Pack, ...]:
    """Return the packs of a folder. `modified_ns`: when a name in it changed last; 0: it does not exist."""
    indexes = sorted(Path(folder).glob("*.idx")) if modified_ns else []
    # A repack takes packs away while we look.
    return tuple(Pack(index) for index in indexes if index.with_suffix(".pack").exists())


@lru_cache(maxsize=_FOLDERS_MAX)
def _borrowed(folder: str, modified_ns: int) -> tuple[str, ...]:
    if not modified_ns:
        return ()
    text = Path(folder, "info/alternates").read_text(encoding="utf-8", errors="surrogateescape")
    return tuple(str(Path(folder, line).resolve()) for line in text.splitlines() if line and line[0] != "#")


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number written lowest bits first, and the place behind it."""
    number = shift = 0
    while True:
        byte = data[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if not byte & 0x80:
            return number, at


def _distance(data: bytes, at: int) -> tuple[int, int]:
    """Return how far back a base is, and the place behind that number."""
    byte = data[at]
    back = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        back = (back + 1) << 7 | byte & 0x7F
    return back, at + 1
