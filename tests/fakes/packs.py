"""Packs of Git as an attacker would make them, byte by byte. Source: gitformat-pack."""

from __future__ import annotations

import hashlib
import itertools
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

COMMIT, TREE, BLOB, TAG, BY_OFFSET = 1, 2, 3, 4, 6


class Entry(NamedTuple):
    """An entry: its kind, its data, of a delta the number of its base, and its name; empty: nobody asks for it."""

    kind: int
    data: bytes
    base: int | None = None
    name: str = ""


def object_name(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def cut_to(size: int, made: int) -> bytes:
    """Return a delta that takes the first bytes of its base; `size`: of the base. It copies 65,536 at a time."""
    head = number(size, 7) + number(made, 7)
    copies = [b"\x80" if left >= 0x10000 else b"\xb0" + left.to_bytes(2, "little") for left in range(made, 0, -0x10000)]
    return head + b"".join(copies)


def number(value: int, first_bits: int, head: int = 0) -> bytes:
    """A number as packs write it: the lowest bits first, below `head` in the first byte."""
    found, value = [head | value & (1 << first_bits) - 1], value >> first_bits
    while value:
        found[-1] |= 0x80
        found.append(value & 0x7F)
        value >>= 7
    return bytes(found)


def write_pack(root: Path, entries: Sequence[Entry]) -> None:
    """Write a pack and its index into a bare repository."""
    written: list[bytes] = []
    starts = [12]
    for entry in entries:
        base = _offset(starts[-1] - starts[entry.base]) if entry.base is not None else b""
        written.append(number(len(entry.data), 4, entry.kind << 4) + base + zlib.compress(entry.data))
        starts.append(starts[-1] + len(written[-1]))
    pack = b"PACK" + struct.pack(">II", 2, len(written)) + b"".join(written)
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    names = [bytes.fromhex(entry.name) if entry.name else hashlib.sha1(b"%d" % place, usedforsecurity=False).digest()
             for place, entry in enumerate(entries)]  # fmt: skip
    rows = sorted(zip(names, starts, written, strict=False))
    fan = list(itertools.accumulate(sum(row[0][0] == byte for row in rows) for byte in range(256)))
    index = b"\xfftOc" + struct.pack(">257I", 2, *fan) + b"".join(row[0] for row in rows)
    index += b"".join(struct.pack(">I", zlib.crc32(row[2])) for row in rows)
    index += b"".join(struct.pack(">I", row[1]) for row in rows) + pack[-20:]
    folder = root / "objects/pack"
    folder.mkdir(exist_ok=True)
    file = folder / f"pack-{pack[-20:].hex()}"
    file.with_suffix(".pack").write_bytes(pack)
    file.with_suffix(".idx").write_bytes(index + hashlib.sha1(index, usedforsecurity=False).digest())


def loose(root: Path, kind: str, size: int) -> str:
    """An object of blanks, written without ever holding it."""
    packer, hasher = zlib.compressobj(9), hashlib.sha1(usedforsecurity=False)
    header = f"{kind} {size}\0".encode()
    chunks = [packer.compress(header)]
    hasher.update(header)
    block = b" " * 2**20
    for at in range(0, size, len(block)):
        piece = block[: min(len(block), size - at)]
        hasher.update(piece)
        chunks.append(packer.compress(piece))
    name: str = hasher.hexdigest()
    path = root / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join([*chunks, packer.flush()]))
    return name


def _offset(back: int) -> bytes:
    found = [back & 0x7F]
    while back := back >> 7:
        back -= 1
        found.insert(0, 0x80 | back & 0x7F)
    return bytes(found)
