"""Values that were met, found again in any text: in time that does not grow with how many there are."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

SHORTEST: Final = 4
"""Shorter values occur everywhere by chance."""


class KnownValues:
    """Secret values with their replacements."""

    __slots__ = ("_by_start",)

    def __init__(self) -> None:
        self._by_start: defaultdict[str, dict[int, dict[str, str]]] = defaultdict(dict)
        """By the first characters, and by length, the longest first once they are asked for."""

    def add(self, value: str, placeholder: str) -> None:
        """Take a value in; the first placeholder of a value stays. Too short ones are left out."""
        if len(value) >= SHORTEST:
            by_length = self._by_start[value[:SHORTEST]]
            by_length.setdefault(len(value), {}).setdefault(value, placeholder)

    def hide(self, text: str) -> str:
        """Return the text with placeholders for these values. Overlapping ones share one placeholder."""
        if not self._by_start:
            return text
        parts: list[str] = []
        end = 0
        for start, stop, placeholder in self._spans(text):
            parts += (text[end:start], placeholder)
            end = stop
        return "".join((*parts, text[end:])) if parts else text

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        spans: list[tuple[int, int, str]] = []
        longest = 0
        for start in range(len(text) - SHORTEST + 1):
            by_length = self._by_start.get(text[start : start + SHORTEST])
            if by_length is None:
                continue
            for length in sorted(by_length, reverse=True):
                placeholder = by_length[length].get(text[start : start + length])
                if placeholder is not None:
                    break
            else:
                continue
            if spans and start < spans[-1][1]:
                before = spans.pop()
                keeps = longest >= length
                spans.append((before[0], max(before[1], start + length), before[2] if keeps else placeholder))
                longest = max(longest, length)
            else:
                spans.append((start, start + length, placeholder))
                longest = length
        return spans


def forms_of(raw: bytes) -> Iterable[str]:
    """The forms in which a value may be quoted: base64, and as text, escaped or not."""
    yield base64.b64encode(raw).decode()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text, safe=""))
