"""Versions by the rules of semver, the newest one in a range, and files in which images have newer ones.

Source: Semantic Versioning 2.0.0, 11; ranges as helm, Argo CD and Flux read them (Masterminds/semver, constraints.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json
from reconciler.regex import regex
from reconciler.templates import parse_image

_NUMBER: Final = r"[0-9]{1,19}"
_ID: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_TAIL: Final = rf"(?:-({_ID}(?:\.{_ID})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_VERSION: Final = regex(rf"v?({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?{_TAIL}", re.ASCII)
_ANY: Final = rf"(?:{_NUMBER}|[xX*])"
_TERM: Final = regex(
    rf"\s*(!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)\s*v?({_ANY})(?:\.({_ANY}))?(?:\.({_ANY}))?{_TAIL}(?=[\s,]|\Z)\s*", re.ASCII
)
_HYPHEN: Final = regex(rf"\s*(v?{_ANY}[^\s,|]*)\s+-\s+(v?{_ANY}[^\s,|]*)\s*", re.ASCII)
_PRELIMINARY: Final = regex(r"(?:alpha|beta|rc|pre|preview|dev|snapshot|nightly|canary)(?:[.-]?[0-9]+)*", re.IGNORECASE)

_Key = tuple[int, int, int, tuple[tuple[int, int, str], ...]]
_LAST: Final = ((2, 0, ""),)
"""A release is newer than all of its preliminary versions."""


class SemanticVersion(NamedTuple):
    """A version. `parts`: how many numbers it was written with; `suffix`: what follows the first dash."""

    key: _Key
    parts: int
    suffix: str

    @property
    def build(self) -> str:
        """Return the suffix that tells builds of a version apart (`alpine`); empty for a preliminary version."""
        return "" if _PRELIMINARY.fullmatch(self.suffix) else self.suffix


def parse_version(text: str) -> SemanticVersion | None:
    """Return a version, with or without a `v`, of one to three numbers; None: it is none."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    numbers = [int(number) for number in match.groups()[:3] if number is not None]
    major, minor, patch = (*numbers, 0, 0)[:3]
    return SemanticVersion((major, minor, patch, _order(match[4] or "")), len(numbers), match[4] or "")


def _order(suffix: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in suffix.split(".")) if suffix else _LAST


def is_range(text: str) -> bool:
    """Return whether a text is a range that can be read."""
    return _ranges(text) is not None


def is_in_range(text: str, range_text: str) -> bool:
    """Return whether a version is in a range; a preliminary one is where the range names one (`~1.2.3-0`)."""
    version = parse_version(text)
    return version is not None and any(_holds(version.key, terms) for terms in _ranges(range_text) or ())


def newest(versions: Iterable[str], range_text: str, current: str) -> str:
    """Return the newest version of a range that is newer than the current one; empty: there is none.

    Only versions of the form of the current one count: as many numbers, and the same build (`1.27.3-alpine`), so that
    tags that move (`1.27`) and other builds never replace it.
    """
    now = parse_version(current)
    ranges = _ranges(range_text)
    if now is None or ranges is None:
        return ""
    fit = [
        (version.key, text)
        for text in versions
        if (version := parse_version(text)) is not None
        and (version.parts, version.build, text[:1] == "v") == (now.parts, now.build, current[:1] == "v")
        and version.key > now.key
        and any(_holds((*version.key[:3], _LAST) if version.build else version.key, terms) for terms in ranges)
    ]
    return max(fit, default=((), ""))[1]


def is_newer(one: str, other: str) -> bool:
    """Return whether a version is newer than another one; what is no version is not."""
    first, second = parse_version(one), parse_version(other)
    return first is not None and second is not None and first.key > second.key


class _Term(NamedTuple):
    """One condition. `parts`: how many numbers are written, before an x."""

    sign: str
    key: _Key
    parts: int


def _ranges(text: str) -> list[list[_Term]] | None:
    """Return the conditions of each alternative; None: it cannot be read."""
    parts = [_terms(part) for part in _HYPHEN.sub(r">= \1, <= \2 ", text).split("||")]
    return None if None in parts else [terms for terms in parts if terms is not None]


def _terms(text: str) -> list[_Term] | None:
    terms: list[_Term] = []
    place = 0
    while place < len(text) or not terms:
        match = _TERM.match(text, place)
        if match is None:
            return None
        terms.append(_term(match))
        place = match.end()
        if text[place : place + 1] == ",":
            place += 1
            if not text[place:].strip():
                return None
    return terms


def _term(match: re.Match[str]) -> _Term:
    parts = 0
    numbers = [0, 0, 0]
    for place, number in enumerate(match.groups()[1:4]):
        if number is None or not number.isdigit():
            break
        numbers[place], parts = int(number), parts + 1
    sign = {"": "=", "=>": ">=", "=<": "<=", "~>": "~"}.get(match[1], match[1])
    # What stands without its last numbers is all that begins with the others.
    sign = "~" if sign == "=" and parts < 3 else sign
    if sign == "~" and parts == 3 and not any(numbers):
        parts = 0  # As in the source: ~0.0.0 is any version.
    elif sign != "~" and parts == 0:
        parts = 2 if sign == "<=" else 3  # As in the source: an x alone is 0.0.0 for each other sign.
    return _Term(sign, (numbers[0], numbers[1], numbers[2], _order(match[5] or "")), parts)


def _holds(key: _Key, terms: list[_Term]) -> bool:
    takes_preliminary = any(term.key[3] != _LAST for term in terms)
    return (takes_preliminary or key[3] == _LAST) and all(_holds_for(key, term) for term in terms)


def _holds_for(key: _Key, term: _Term) -> bool:
    sign, bound, parts = term
    begins = key[:parts] == bound[:parts]
    match sign:
        case "=":
            return key == bound
        case "!=":
            return key != bound if parts == 3 else not begins or (parts == 2 and key[3] != bound[3])
        case ">":
            return key > bound and not (parts < 3 and begins)
        case "<":
            return key < bound
        case ">=":
            return key >= bound
        case "<=":
            return key <= bound or (parts < 3 and begins)
        case "~":
            return key >= bound and (parts == 0 or key[: min(parts, 2)] == bound[: min(parts, 2)])
    place = next((place for place, number in enumerate(bound[:parts]) if number), max(parts - 1, 0))
    return key >= bound and (parts == 0 or key[: place + 1] == bound[: place + 1])


class ImageVersion(NamedTuple):
    """Tag and digest of an image as written; empty where it has none."""

    tag: str
    digest: str


Newer = Callable[[ImageVersion], ImageVersion]
"""The version that takes the place of one; the same: none does."""


def image_versions(body: Json, name: str) -> tuple[ImageVersion, ...]:
    """Return each version of an image in a document."""
    versions: list[ImageVersion] = []

    def collect(version: ImageVersion) -> ImageVersion:
        versions.append(version)
        return version

    with_newer(body, name, collect)
    return tuple(dict.fromkeys(versions))


def with_newer(tree: Json, name: str, newer: Newer) -> Any:
    """Return a document in which each version of an image is another one.

    Found are `image: NAME:TAG@DIGEST`, mappings with `repository` (and `registry`) beside `tag` and `digest`, and
    `images` of a kustomization (`name` or `newName`, `newTag`, `digest`).
    """
    if isinstance(tree, list):
        return [with_newer(below, name, newer) for below in tree]
    if isinstance(tree, str):
        if not tree.startswith(name):
            return tree
        image = parse_image(tree)
        if image is None or image.name != name or not image.tag:
            return tree
        then = newer(ImageVersion(image.tag, image.digest))
        return str(image._replace(tag=then.tag, digest=then.digest))
    if not isinstance(tree, Mapping):
        return tree
    result = {key: with_newer(value, name, newer) for key, value in tree.items()}
    for key in _tag_keys(tree, name):
        tag, at, digest = str(tree[key]).partition("@")
        now = ImageVersion(tag, digest or str(tree.get("digest") or ""))
        then = newer(now)
        if then != now:
            result[key] = f"{then.tag}@{then.digest}" if at else then.tag
            if tree.get("digest"):
                result["digest"] = then.digest
    return result


def _tag_keys(tree: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the key with the tag of the image, if the mapping names it."""
    registry, repository = tree.get("registry"), tree.get("repository")
    named = f"{registry}/{repository}" if registry and isinstance(repository, str) else repository
    if named == name and isinstance(tree.get("tag"), str):
        yield "tag"
    if (tree.get("newName") or tree.get("name")) == name and isinstance(tree.get("newTag"), str):
        yield "newTag"
