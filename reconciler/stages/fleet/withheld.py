"""The part of a store file that may be kept on a disk: all but Secrets, and values for them.

A withheld document keeps its type and name, so that its object is left alone while its values are unknown. Source:
design#promise-10: no secret value leaves the process except to the cluster it is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Final

import orjson
from msgspec.structs import replace

from reconciler.model.fleet import StoreFile
from reconciler.model.problem import Document
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.documents import OVERRIDE_KINDS
from reconciler.stages.fleet.documents import WITHHELD, DocumentKind, classify
from reconciler.stages.secrecy import is_secret_kind, names_secrets
from reconciler.stages.yaml import read_yaml

_MARKS: Final = (b"secret", b"stringdata", b"override", b"private key", b"last-applied-configuration")
"""Texts without which a file holds nothing secret, nor an override. Compared in lower case."""
_WITHHELD_BLOB: Final = "withheld:"


def without_secrets(file: StoreFile) -> StoreFile:
    """Return the file as it may be kept; the same one if nothing has to be left out.

    Every document stays on its line. `blob` differs between the two contents.
    """
    if not _may_hold_secrets(file.data):
        return file
    read = read_yaml(file.path, file.data)
    kept = [(document, _kept(document)) for document in read.documents]
    if not read.broken and all(body is document.body for document, body in kept):
        return file
    lines = [(document.line, body) for document, body in kept]
    lines += [(broken.line, _sketch(broken.body or {})) for broken in read.broken]
    return replace(file, blob=withheld_blob(file.blob), data=_written(sorted(lines, key=itemgetter(0))))


def withheld_blob(blob: str) -> str:
    """Return the blob name of the kept part of a content; of a kept part, the same."""
    return blob if blob.startswith(_WITHHELD_BLOB) else f"{_WITHHELD_BLOB}{blob}"


def _may_hold_secrets(data: bytes) -> bool:
    text = data.lower()
    return any(mark in text for mark in _MARKS) or names_secrets(data)


def _kept(document: Document) -> JsonObject:
    body = document.body
    kind = body.get("kind")
    found = classify(document)
    if found is DocumentKind.SKIPPED:
        return {}
    if found is DocumentKind.ENCRYPTED:
        # It is authenticated with its whole file, which is rewritten without the withheld part.
        return _sketch(body)
    if found is DocumentKind.RENDER_LOCK:
        return body  # Names of files and of contents.
    may_be_secret = not isinstance(kind, str) or is_secret_kind(kind) or kind in OVERRIDE_KINDS
    # No other kind has such a field: it was meant to be a Secret.
    return _sketch(body) if may_be_secret or "stringData" in body else body


def _sketch(body: JsonObject) -> JsonObject:
    """Return the type and name of a document, and the selectors of an override policy."""
    told = {key: body[key] for key in ("apiVersion", "kind") if isinstance(body.get(key), str)}
    named = {key: dig(body, "metadata", key) for key in ("name", "namespace")}
    metadata = {key: value for key, value in named.items() if isinstance(value, str)}
    is_override = told.get("kind") in OVERRIDE_KINDS
    selectors = dig(body, "spec", "resourceSelectors") if is_override else None
    spec = {} if selectors is None else {"spec": {"resourceSelectors": selectors}}
    return {**told, "metadata": metadata, **spec, WITHHELD: True}


def _written(documents: Iterable[tuple[int, JsonObject]]) -> bytes:
    """A line a document, each where it began."""
    text, line = b"", 1
    for begins, body in documents:
        if text:
            text, line = text + b"---\n", line + 1
        text += b"\n" * (begins - line) + orjson.dumps(body) + b"\n"
        line = max(begins, line) + 1
    return text
