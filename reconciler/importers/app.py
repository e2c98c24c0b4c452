"""One application of another tool in one cluster, names for it here, and fields that the tool leaves to others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from reconciler.api.content import JsonObject, digest_of
from reconciler.api.problem import Source
from reconciler.documents import is_system_namespace, may_be_allowed, pointer_tokens
from reconciler.importers.reading import Uncarried
from reconciler.ownership import parse_path, path_text

_UNFIT: Final = re.compile(r"[^a-z0-9-]+")
NAME_MAX: Final = 53
"""Of a Render, whose limit is that of a release."""
_PLAIN_JQ: Final = re.compile(r"(?:\.(?:[A-Za-z_]\w*|\"[^\"\\]+\"|\[\"[^\"\\]+\"\])(?:\[\])?)+", re.ASCII)
_JQ_STEP: Final = re.compile(r"\.(?:(?P<word>[A-Za-z_]\w*)|\[?\"(?P<quoted>[^\"]+)\"\]?)(?P<each>\[\])?", re.ASCII)

Content = bytes | tuple[JsonObject, ...]
"""A file as it is, or the documents to be written into it."""


class Inline(Struct, frozen=True):
    """A file with values from the document itself. `values` as they are to be written."""

    values: JsonObject


class App(Struct, frozen=True, kw_only=True):
    """An application for one cluster, with everything needed to render it.

    `group`: applications of one group were made from one template. `kinship`: applications with an equal one are copies
    that differ in values or in the overlay. `helm`: `spec.helm` without its values. `folder`: a kustomization, with
    helm the one that patches its output; files by their paths in it. `files`: its other inputs, by paths in the store.
    `labels` are those of the application. `missing`: files to copy into the store, by their paths there, since no
    checkout was given.
    """

    name: str
    group: str
    kinship: str
    source: Source
    cluster: str
    tool: str
    namespace: str = ""
    helm: Mapping[str, Any] | None = None
    values: tuple[str | Inline, ...] = ()
    folder: Mapping[str, Content] = field(default_factory=dict)
    files: Mapping[str, Content] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Return the namespace of its objects that say none; empty: it is not known."""
        return str(self.helm["namespace"]) if self.helm is not None else self.namespace


class Member(Struct, frozen=True, kw_only=True):
    """A cluster of the other tool. `context`: its name there, if that names no cluster here."""

    name: str
    context: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


def safe_name(text: str, most: int = NAME_MAX) -> str:
    """A name of small letters, digits and dashes; one that had to change ends with a digest.

    >>> safe_name("web"), safe_name("Team/Web")
    ('web', 'team-web-1f4c464a')
    """
    name = _UNFIT.sub("-", text.lower()).strip("-")
    if name == text and len(name) <= most:
        return name
    return f"{name[: most - 9].strip('-') or 'app'}-{digest_of(text)[:8]}"


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
        path = _path([int(token) if token.isdecimal() else token for token in pointer_tokens(pointer) or ()])
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


def check_namespace(namespace: str) -> str:
    """Return the namespace, if policies may select its objects. Raises Uncarried: they may not."""
    if is_system_namespace(namespace) and not may_be_allowed(namespace):
        raise Uncarried(f"no policy may select what is in {namespace}; leave it to the tool that makes the cluster")
    return namespace
