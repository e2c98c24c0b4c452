"""Values that sops encrypted in a body, and the rules that say which values are encrypted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from reconciler.api.content import CIPHERTEXT_MARK as MARK
from reconciler.api.content import Json, JsonObject, Leaf, Step
from reconciler.regex import regex

_FORM: Final = regex(
    r"ENC\[AES256_GCM,data:(?P<data>[A-Za-z0-9+/=]+),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:(?P<type>[a-z]+)\]"
)
_STAND_INS: Final = {"str": "eA==", "int": 1, "float": 1.5, "bool": True, "time": "2006-01-02T15:04:05Z"}
"""Placeholders for validating unreadable values: right by type, and base64 for a text."""
TYPES: Final = frozenset(_STAND_INS)
"""Types of values that become part of an object. Source: sops 3.13, aes/cipher.go."""


def is_ciphertext(value: Json) -> bool:
    """Return whether a value begins like those that sops encrypted; it may be cut off."""
    return isinstance(value, str) and value.startswith(MARK)


def parts_of(text: str) -> re.Match[str] | None:
    """The groups of an encrypted value: `data`, iv and tag in base64, and `type`; None: it is of another form."""
    return _FORM.fullmatch(text)


def names_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The names among the steps: sops binds a value to them, and not to places in lists."""
    return tuple([step for step in steps if isinstance(step, str)])


def leaves_in(value: Json, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], Json]]:
    """Every value that is neither a mapping nor a list, with the steps to it, in the order of the document."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from leaves_in(below, (*steps, name))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves_in(below, (*steps, index))
    else:
        yield steps, value


def ciphertexts_in(body: JsonObject) -> Counter[Leaf]:
    """Return the encrypted values of a body, with the number of occurrences."""
    return Counter((names_of(steps), text) for steps, text in leaves_in(body) if is_ciphertext(text))


def disturbed(before: JsonObject, after: JsonObject) -> Leaf | None:
    """An encrypted value of one of the bodies that the other has not got, or not there; None: they have the same."""
    was, is_now = ciphertexts_in(before), ciphertexts_in(after)
    return min([*(was - is_now), *(is_now - was)], default=None)


def replaced(
    body: JsonObject, value_of: Callable[[Leaf], tuple[Json] | None]
) -> tuple[JsonObject, tuple[tuple[Step, ...], ...]]:
    """The body with other values in place of encrypted ones, and the steps to these. None: it stays as it is."""
    places: list[tuple[Step, ...]] = []

    def of(value: Json, steps: tuple[Step, ...]) -> Json:
        if isinstance(value, Mapping):
            return {name: of(below, (*steps, name)) for name, below in value.items()}
        if isinstance(value, list):
            return [of(below, (*steps, index)) for index, below in enumerate(value)]
        other = value_of((names_of(steps), value)) if is_ciphertext(value) else None
        if other is None:
            return value
        places.append(steps)
        return other[0]

    return of(body, ()), tuple(places)


def with_stand_ins(body: JsonObject) -> JsonObject:
    """The body as it can be judged without a key: in place of each encrypted value one of its type."""

    def of(leaf: Leaf) -> tuple[Json] | None:
        parts = parts_of(leaf[1])
        return (_STAND_INS[parts["type"]],) if parts is not None and parts["type"] in _STAND_INS else None

    return replaced(body, of)[0]


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
        words = _WORDS.fullmatch(value) if "comment" not in rule else None
        if words is None:
            return None
        hit = any(_matches(words, name) for name in names)
    return hit is rule.startswith("encrypted_")


def _matches(words: re.Match[str], name: str) -> bool:
    begins, several, one, ends = words.groups()
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
