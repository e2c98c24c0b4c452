"""Limits of what templates may compute: they come with the documents of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MANY: Final = 10_000
"""Entries of a list."""
LENGTH_MAX: Final = 2**20
"""Characters of a text."""
_TRIES_MAX: Final = 10_000_000
"""Steps of a search, at worst: Go's patterns are linear, Python's are not."""


class GoFailure(Exception):
    """An evaluation that ends; the message goes on after "the template …". `is_missing`: for want of a key.

    `action`: the text between the braces that fails; empty until it is known.
    """

    def __init__(self, why: str, *, is_missing: bool = False) -> None:
        """Keep the reason."""
        super().__init__(why)
        self.is_missing = is_missing
        self.action = ""


def bounded(value: Any) -> Any:
    """Return the result of a function; one that no store needs is an error, since templates may be anyone's."""
    is_long = isinstance(value, str) and len(value) > LENGTH_MAX
    if isinstance(value, list | Mapping):
        is_long = len(value) > MANY or sum(len(each) for each in value if isinstance(each, str)) > LENGTH_MAX
    if is_long or (isinstance(value, int) and abs(value) >> 63):
        raise GoFailure("makes too large a value")
    return value


def fits(length: int, times: int) -> None:
    """Refuse what would be written so often, before it is."""
    if length * times > LENGTH_MAX:
        raise GoFailure("makes too large a value")


def pattern(form: str, text: str) -> re.Pattern[str]:
    """Return a pattern that ends soon for a text: it repeats no group, and few parts."""
    if re.search(r"\)[*+{]", form) or (len(text) + 1) ** len(re.findall(r"[*+{]", form)) > _TRIES_MAX:
        raise GoFailure("searches by a pattern that may take for ever here: repeat no group, and fewer parts")
    return re.compile(form)
