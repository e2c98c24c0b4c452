"""Fields that the other tool leaves to others, as `spec.ignore` of the Fleet document."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from reconciler.documents import pointer_tokens
from reconciler.ownership import parse_path, path_text

_PLAIN_JQ: Final = re.compile(r"(?:\.(?:[A-Za-z_]\w*|\"[^\"\\]+\"|\[\"[^\"\\]+\"\])(?:\[\])?)+", re.ASCII)
_JQ_STEP: Final = re.compile(r"\.(?:(?P<word>[A-Za-z_]\w*)|\[?\"(?P<quoted>[^\"]+)\"\]?)(?P<each>\[\])?", re.ASCII)


class Ignored(NamedTuple):
    """One rule: whose fields, and which. Empty texts: any; the group None: any."""

    group: str | None
    kind: str
    namespace: str
    name: str
    paths: tuple[str, ...]


def ignored(pointers: tuple[str, ...], expressions: tuple[str, ...] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return field paths for JSON pointers and jq path expressions, and those that are no plain path.

    >>> ignored(("/spec/replicas", "/metadata/labels/a~1b"), (".spec.x[].y", "select(.a)"))
    (('spec.replicas', "metadata.labels['a/b']", 'spec.x[*].y'), ('select(.a)',))
    """
    paths: list[str] = []
    refused: list[str] = []
    for pointer in pointers:
        tokens = pointer_tokens(pointer)
        path = _path([int(token) if token.isdecimal() else token for token in tokens or ()])
        (paths if path else refused).append(path or pointer)
    for expression in expressions:
        path = ""
        if _PLAIN_JQ.fullmatch(expression):
            for step in _JQ_STEP.finditer(expression):
                path = f"{path}.{_path([step['word'] or step['quoted']])}{'[*]' if step['each'] else ''}"
            path = path.replace(".[", "[").removeprefix(".")
        is_path = bool(path) and parse_path(path) is not None
        (paths if is_path else refused).append(path if is_path else expression)
    return tuple(paths), tuple(refused)


def _path(steps: list[str | int]) -> str:
    return path_text(tuple(steps)) if steps else ""
