"""Decoding of answers and documents: their types, and compressed bytes."""

from __future__ import annotations

import zlib
from typing import TypeVar

import msgspec

_Kind = TypeVar("_Kind")


def prepared(kind: type[_Kind]) -> type[_Kind]:
    """Return the type, prepared for msgspec. A decorator for types that several threads decode into.

    msgspec (0.22) inspects a type when it is first decoded into, and two threads that do so at once end the process:
    one of them reads while the other is still writing. A module is imported by one thread alone.
    """
    msgspec.json.Decoder(kind)
    return kind


def decompressed(data: bytes, bytes_max: int, *, is_gzip: bool) -> bytes:
    """Return the content of one gzip member, or of one zlib stream.

    Readers of gzip differ in what they make of bytes behind the first member, further members among them
    (RFC 1952, 2.2): what one of them checks is not what another one reads.
    Raises ValueError: it is cut off, damaged or longer than `bytes_max`, or something follows it.
    """
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | (16 if is_gzip else 0))
    try:
        output = reader.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(output) > bytes_max:
        raise ValueError(f"it holds more than {bytes_max:,} bytes")
    if not reader.eof:
        raise ValueError("it is cut off")
    if reader.unused_data:
        raise ValueError("something follows its first member")
    return output
