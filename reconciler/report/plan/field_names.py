"""Names of fields in a sentence, and their order of importance."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.regex import regex

_QUOTED_END = regex(r"\['([^']*)'\]$|\[\"([^\"]*)\"\]$")
_LEADING = ("image", "replicas")
"""The fields that people look for first."""


def leaf(path: str) -> str:
    """`image` of `spec.containers[name=a.b].image`, `nginx.conf` of `data['nginx.conf']`."""
    if quoted := _QUOTED_END.search(path):
        return quoted[1] or quoted[2] or path
    if not path or path.endswith("]"):
        return path or "whole object"
    return path.rpartition(".")[2]


def by_importance(paths: Iterable[str]) -> list[str]:
    """Return the paths, each once, by importance for readers."""
    return sorted(set(paths), key=lambda path: (_rank(leaf(path)), path))


def _rank(name: str) -> int:
    return _LEADING.index(name) if name in _LEADING else len(_LEADING)
