"""The values of a file that must be encrypted, by its own rules.

sops takes Go's expressions. A store is hostile input, and an expression of Python can be made to search for ever, so
only the usual forms, words between anchors, are evaluated; under all others an encrypted value is known by its form
alone. That loses no safety: each value is authenticated at its place, and all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.model.tree import Json
from reconciler.regex import regex

RULES: Final = (
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
)
"""A file has at most one of them. Source: sops 3.13, stores/stores.go."""
_DEFAULT_SUFFIX: Final = "_unencrypted"
_WORDS: Final = regex(r"(\^?)(?:\(([\w/|-]+)\)|([\w/-]+))(\$?)", re.ASCII)


def is_to_be_encrypted(block: Mapping[str, Json], names: tuple[str, ...]) -> bool | None:
    """Return whether the value at the names must be encrypted; None: the rule is not supported here."""
    rule, value = next(
        ((rule, block[rule]) for rule in RULES if block.get(rule)), ("unencrypted_suffix", _DEFAULT_SUFFIX)
    )
    if rule.endswith("_suffix"):
        hit = any(name.endswith(value) for name in names)
    else:
        found = _WORDS.fullmatch(value) if "comment" not in rule else None
        if found is None:
            return None
        hit = any(_matches(found, name) for name in names)
    return hit is rule.startswith("encrypted_")


def _matches(found: re.Match[str], name: str) -> bool:
    begins, several, one, ends = found.groups()
    for word in several.split("|") if several else (one,):
        if begins and ends:
            is_hit = name == word
        elif begins:
            is_hit = name.startswith(word)
        else:
            is_hit = name.endswith(word) if ends else word in name
        if is_hit:
            return True
    return False
