"""Makes a picture of a page small: at most 256 colours, told by their place in a palette. Standard library alone."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 256
_FREQUENT: Final = 192
_BYTES: Final = {2: 3, 6: 4}
"""Of each pixel, by the type of the picture: with and without transparency."""


def small_png(picture: bytes) -> bytes:
    """The same picture with 256 of its colours; each other one becomes the nearest of them."""
    width, height, pixels = _pixels(picture)
    counts = Counter(pixels)
    palette = _palette(counts)
    place = {colour: number for number, colour in enumerate(palette)}
    for colour in counts.keys() - place.keys():
        place[colour] = min(range(len(palette)), key=lambda number: _apart(palette[number], colour))
    places = bytes(place[pixel] for pixel in pixels)
    rows = b"".join(b"\0" + places[at : at + width] for at in range(0, len(places), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _palette(counts: Counter[bytes]) -> list[bytes]:
    """The most frequent colours, and of the others those that are farthest from any that is there already."""
    ordered = [colour for colour, _ in counts.most_common()]
    palette, others = ordered[:_FREQUENT], ordered[_FREQUENT:]
    far = {colour: min(_apart(colour, chosen) for chosen in palette) for colour in others}
    while far and len(palette) < _COLOURS:
        chosen = max(far, key=far.__getitem__)
        del far[chosen]
        palette.append(chosen)
        far = {colour: min(known, _apart(colour, chosen)) for colour, known in far.items()}
    return palette


def _pixels(picture: bytes) -> tuple[int, int, list[bytes]]:
    chunks = list(_chunks(picture))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if (depth, interlaced) != (8, 0):
        raise ValueError("not a picture as browsers take them: 8 bits, not interlaced")
    size = _BYTES[kind]
    data = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    stride, above, pixels = width * size, bytearray(width * size), list[bytes]()
    for at in range(0, height * (stride + 1), stride + 1):
        above = _plain_row(data[at], bytearray(data[at + 1 : at + 1 + stride]), above, size)
        pixels += [bytes(above[start : start + 3]) for start in range(0, stride, size)]
    return width, height, pixels


def _plain_row(kind: int, row: bytearray, above: bytearray, size: int) -> bytearray:
    """A row as it was before it was told by its neighbours. Source: PNG, filter types."""
    for at, value in enumerate(row) if kind else ():
        left, corner = (row[at - size], above[at - size]) if at >= size else (0, 0)
        guess = (left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))[kind - 1]
        row[at] = (value + guess) & 255
    return row


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda neighbour: abs(guess - neighbour))


def _apart(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
