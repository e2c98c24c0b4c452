"""Values that must be seen nowhere, and the search for them in every form in which they could be."""

from __future__ import annotations

import base64
import html
import json
import secrets
from collections.abc import Callable, Iterator
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
        return sorted(
            place
            for place, value in self.planted.items()
            if any(form in joined or form in output for form in _forms(value))
        )


def _forms(value: str) -> Iterator[bytes]:
    """Pieces of the value itself and of its base64 form at each of the three places in a group of four."""
    yield from _pieces(value)
    yield from _pieces(value[::-1])
    yield from _pieces(value.encode().hex())
    yield from _pieces(value.upper())
    for before in range(3):
        encoded = base64.b64encode(b"x" * before + value.encode()).decode()
        # The first and last group depend on what stands around.
        yield from _pieces(encoded[4:-4])
    awkward = json.dumps(value)[1:-1]
    assert awkward == quote(value) == quote_plus(value) == html.escape(value), "hex digits need no escape"


def _pieces(text: str) -> Iterator[bytes]:
    for start in range(0, len(text) - _PIECE + 1, 4):
        yield text[start : start + _PIECE].encode()
