"""Versions by the rules of semver, and the newest one in a range.

Source: Semantic Versioning 2.0.0, 11; ranges as helm writes them (Masterminds/semver): `1.x`, `~1.2`, `^1.2.3`,
`>=1.2, <2`, `1.2 - 1.4`, `||`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from reconciler.regex import regex

_VERSION: Final = regex(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_WILD: Final = regex(r"v?(?:(\d{1,9})(?:\.(\d{1,9}))?\.)?[xX*](?:\.[xX*])?", re.ASCII)
_TERM: Final = regex(r"(>=|<=|>|<|=|!=|\^|~)?\s*(v?[0-9xX*][0-9A-Za-z.*+-]*)", re.ASCII)
_HYPHEN: Final = regex(r"\s*(\S+)\s+-\s+(\S+)\s*")

_Key = tuple[int, int, int, tuple[tuple[int, int, str], ...]]
_LAST: Final = ((2, 0, ""),)
"""A release is newer than all of its preliminary versions."""


class SemanticVersion(NamedTuple):
    """A version. `parts`: how many numbers it was written with; `suffix`: what follows the first dash."""

    key: _Key
    parts: int
    suffix: str


def parse_version(text: str) -> SemanticVersion | None:
    """Return a version, with or without a `v`, of one to three numbers; None: it is none."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    numbers = [int(number) for number in match.groups()[:3] if number is not None]
    major, minor, patch = (*numbers, 0, 0)[:3]
    suffix = match[4] or ""
    ids = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in suffix.split("."))
    return SemanticVersion((major, minor, patch, ids if suffix else _LAST), len(numbers), suffix)


def is_range(text: str) -> bool:
    """Return whether a text is a range that can be read."""
    return all(_bounds(part) is not None for part in text.split("||"))


def newest(versions: Iterable[str], range_text: str, current: str) -> str:
    """Return the newest version of a range that is newer than the current one; empty: there is none.

    Only versions of the form of the current one count: as many numbers, and the same suffix (`1.27.3-alpine`), so that
    tags that move (`1.27`) and other builds never replace it.
    """
    now = parse_version(current)
    ranges = [found for part in range_text.split("||") if (found := _bounds(part)) is not None]
    if now is None:
        return ""
    fit = [
        (version.key, text)
        for text in versions
        if (version := parse_version(text)) is not None
        and (version.parts, version.suffix, text[:1] == "v") == (now.parts, now.suffix, current[:1] == "v")
        and version.key > now.key
        and any(_is_in(version.key[:3], bounds) for bounds in ranges)
    ]
    return max(fit, default=((), ""))[1]


def is_newer(one: str, other: str) -> bool:
    """Return whether a version is newer than another one; what is no version is not."""
    first, second = parse_version(one), parse_version(other)
    return first is not None and second is not None and first.key > second.key


_Numbers = tuple[int, int, int]
_Bound = tuple[str, _Numbers]


def _bounds(text: str) -> list[_Bound] | None:
    """Return the conditions of a range without `||`; None: it cannot be read."""
    if hyphen := _HYPHEN.fullmatch(text):
        low, high = parse_version(hyphen[1]), parse_version(hyphen[2])
        return None if low is None or high is None else [(">=", low.key[:3]), *_upper(high)]
    found: list[_Bound] = []
    place = 0
    stripped = text.strip()
    while place < len(stripped):
        match = _TERM.match(stripped, place)
        bounds = _of_term(match[1] or "", match[2]) if match is not None else None
        if match is None or bounds is None:
            return None
        found += bounds
        place = match.end()
        while stripped[place : place + 1] in (" ", ","):
            place += 1
    return found or None


def _upper(version: SemanticVersion) -> list[_Bound]:
    """Return the condition of `<=`; a version of fewer numbers stands for all that begin with it."""
    return [("<", _next(version.key[:3], version.parts - 1))] if version.parts < 3 else [("<=", version.key[:3])]


def _next(numbers: _Numbers, place: int) -> _Numbers:
    """Return the first version after all that are equal up to a number."""
    found = [*numbers[: place + 1], 0, 0, 0][:3]
    found[place] += 1
    return found[0], found[1], found[2]


def _of_term(sign: str, text: str) -> list[_Bound] | None:
    if wild := _WILD.fullmatch(text):
        if wild[1] is None:
            return [(">=", (0, 0, 0))]
        low = (int(wild[1]), int(wild[2] or 0), 0)
        return [(">=", low), ("<", _next(low, 0 if wild[2] is None or sign == "^" else 1))]
    version = parse_version(text)
    if version is None:
        return None
    numbers = version.key[:3]
    match sign:
        case "^":
            place = next((place for place, number in enumerate(numbers[: version.parts]) if number), version.parts - 1)
            return [(">=", numbers), ("<", _next(numbers, place))]
        case "~":
            return [(">=", numbers), ("<", _next(numbers, min(version.parts - 1, 1)))]
        case "" | "=":
            return [(">=", numbers), *_upper(version)]
        case "<=":
            return _upper(version)
        case _:
            return [(sign, numbers)]


def _is_in(numbers: _Numbers, bounds: list[_Bound]) -> bool:
    tests = {
        ">=": lambda bound: numbers >= bound, "<": lambda bound: numbers < bound, ">": lambda bound: numbers > bound,
        "<=": lambda bound: numbers <= bound, "!=": lambda bound: numbers != bound,
    }  # fmt: skip
    return all(tests[sign](bound) for sign, bound in bounds)
