"""Values that must be seen nowhere, and the search for them in every form in which they could be."""

from __future__ import annotations

import base64
import html
import json
import secrets
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import quote, quote_plus

from msgspec import Struct, field

_PIECE = 12
"""So many characters in a row of a value, or of its base64 form, are a leak: values may be cut or split over lines."""


class Canaries(Struct):
    """Random values by the place where each was planted, so that a leak tells where it came from."""

    planted: dict[str, str] = field(default_factory=dict)

    def plant(self, place: str, shape: str | Callable[[str], str] = "{}") -> str:
        """A new value for a place; `shape` is what stands around it."""
        value = self.planted[place] = secrets.token_hex(16)
        return shape.format(value) if isinstance(shape, str) else shape(value)

    def encoded(self, place: str, shape: str = "{}") -> str:
        """The same as base64, as `data` of a Secret has it."""
        return base64.b64encode(self.plant(place, shape).encode()).decode()

    def leaks(self, output: bytes) -> list[str]:
        """Places of which a value, or a good part of it, is in the output in any form."""
        # What a line end, an escape or a quote splits is joined again.
        joined = output.translate(None, b" \t\r\n\"'\\|`+,")
        places = {form: place for place, value in self.planted.items() for form in _forms(value)}
        pieces = (text[at : at + _PIECE] for text in {joined, output} for at in range(len(text) - _PIECE + 1))
        return sorted({places[piece] for piece in pieces if piece in places})


@cache
def _forms(value: str) -> frozenset[bytes]:
    """Pieces of the value itself and of its base64 form at each of the three places in a group of four."""
    awkward = json.dumps(value)[1:-1]
    assert awkward == quote(value) == quote_plus(value) == html.escape(value), "hex digits need no escape"
    encoded = (base64.b64encode(b"x" * before + value.encode()).decode() for before in range(3))
    # The first and last group depend on what stands around.
    texts = (value, value[::-1], value.encode().hex(), value.upper(), *(text[4:-4] for text in encoded))
    return frozenset(piece for text in texts for piece in _pieces(text))


def _pieces(text: str) -> Iterator[bytes]:
    for start in range(0, len(text) - _PIECE + 1, 4):
        yield text[start : start + _PIECE].encode()
