"""JSON trees as YAML that every reader takes for the same tree: kubectl, YAML 1.1 and YAML 1.2.

A string is written bare only when no reader could see anything else in it; everything doubtful is quoted. Keys are
sorted, with apiVersion, kind and metadata first, so that equal trees give equal text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from reconciler.api.plan import Manifest
from reconciler.api.tree import Json
from reconciler.report.mask import Masker
from reconciler.report.render_json import sorted_manifests
from reconciler.report.safe import is_inert, visible

_FIRST_KEYS = ("apiVersion", "kind", "metadata")
_WORD = r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*"
_BARE = re.compile(rf"{_WORD}(?: {_WORD})*|\d+(?:m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def render_yaml(manifests: Iterable[Manifest], *, show_secrets: bool = False) -> str:
    """Return manifests as YAML documents by cluster and identity, each under a comment with its source."""
    masker = Masker(show_secrets=show_secrets)
    return "".join(
        f"---\n{_comment(manifest)}{dump_yaml(masker.manifest(manifest.body))}"
        for manifest in sorted_manifests(tuple(manifests))
    )


def _comment(manifest: Manifest) -> str:
    parts = [f"cluster: {manifest.cluster}", f"source: {manifest.source}", *manifest.overrides]
    return "".join(f"# {visible(part)}\n" for part in parts if part != "source: ")


def dump_yaml(tree: Json) -> str:
    """A tree as one YAML document with a newline at the end."""
    if isinstance(tree, Mapping) and tree:
        return "".join(f"{line}\n" for line in _mapping(tree, "", is_top=True))
    if isinstance(tree, list) and tree:
        return "".join(f"{line}\n" for line in _sequence(tree, ""))
    return f"{_inline(tree)}\n"


def _mapping(tree: Mapping[str, Json], indent: str, *, is_top: bool = False) -> Iterator[str]:
    first = [key for key in _FIRST_KEYS if is_top and key in tree]
    for key in (*first, *sorted(key for key in tree if key not in first)):
        value = tree[key]
        name = _string(key)
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}:"
            yield from _mapping(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:"
            yield from _sequence(value, indent)
        elif isinstance(value, str) and _fits_block(value):
            yield from _block(f"{indent}{name}: ", value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {_inline(value)}"


def _sequence(items: list[Json], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            yield from _dashed(_mapping(item, f"{indent}  "), indent)
        elif isinstance(item, list) and item:
            yield from _dashed(_sequence(item, f"{indent}  "), indent)
        elif isinstance(item, str) and _fits_block(item):
            yield from _block(f"{indent}- ", item, f"{indent}  ")
        else:
            yield f"{indent}- {_inline(item)}"


def _dashed(lines: Iterator[str], indent: str) -> Iterator[str]:
    first = next(lines)
    yield f"{indent}- {first[len(indent) + 2 :]}"
    yield from lines


def _fits_block(text: str) -> bool:
    """Return whether a literal block shows the text exactly: printable lines, none of which could be lost."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and lines[0] != ""
        and not lines[0].startswith(" ")
        and all(line.isprintable() and not line.endswith(" ") and is_inert(line) for line in lines)
        and not text.endswith("\n\n")
    )


def _block(start: str, text: str, indent: str) -> Iterator[str]:
    yield start + ("|" if text.endswith("\n") else "|-")
    for line in text.removesuffix("\n").split("\n"):
        yield f"{indent}{line}" if line else ""


def _inline(value: Json) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return json.dumps(value)


def _number(value: float) -> str:
    # YAML 1.1 takes 1e+16 for a string: it wants a point.
    text = json.dumps(value, allow_nan=False)
    mantissa, exponent, power = text.partition("e")
    return text if not exponent or "." in mantissa else f"{mantissa}.0e{power}"


def _string(text: str) -> str:
    if _BARE.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    if not is_inert(text):
        quoted = quoted.replace("##", r"#\x23")
    return "".join(char if char.isprintable() else _escaped(char) for char in quoted)


def _escaped(char: str) -> str:
    # YAML, unlike JSON, knows no surrogate pairs.
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
