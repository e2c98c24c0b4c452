"""The files of an output by size and kind: definitions and encrypted Secrets in files of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.api.content import JsonObject, dig
from reconciler.incremental import by_key
from reconciler.regex import regex

_UNFIT: Final = regex(r"[^a-z0-9.-]")
SPLIT_BYTES: Final = 2**20
"""A file of more is split by kind."""


def split_file(name: str, documents: Iterable[tuple[JsonObject, str]]) -> dict[str, list[str]]:
    """Return the texts of the documents by file name. `documents`: each with its text; `name`: the file of all.

    sops has one block for a file, so each encrypted document has one of its own. A large file is split by kind, and
    each CustomResourceDefinition is a file.
    """
    found = list(documents)
    is_large = sum(len(text) for _, text in found) > SPLIT_BYTES
    return by_key((_file_of(name, body, is_large=is_large), text) for body, text in found)


def _file_of(name: str, body: JsonObject, *, is_large: bool) -> str:
    if "sops" in body:
        kind, name = str(body.get("kind")), str(dig(body, "metadata", "name"))
        own = name if kind == "Secret" else _UNFIT.sub("-", f"{kind.lower()}-{name}")
        return f"secrets/{dig(body, 'metadata', 'namespace') or 'cluster'}/{own}.yaml"
    if not is_large:
        return name
    if body.get("kind") == "CustomResourceDefinition":
        return f"crds/{dig(body, 'metadata', 'name')}.yaml"
    return f"{name.removesuffix('.yaml')}-{str(body.get('kind')).lower()}.yaml"
