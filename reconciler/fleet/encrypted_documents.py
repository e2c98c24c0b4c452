"""Documents that sops encrypted become templates as they are, and what a copy of the store leaves out.

A withheld document keeps its type and name, so that its object is left alone while its values are unknown. Source:
design#promise-10: no secret value leaves the process except to the cluster it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

import orjson
from msgspec.structs import replace

from reconciler.api.content import CIPHERTEXT_MARK, Content, JsonObject, dig, with_value
from reconciler.api.fleet import StoreFile, Template
from reconciler.api.problem import Document, Problem, Source
from reconciler.documents import OVERRIDE_KINDS
from reconciler.fleet.documents import WITHHELD, DocumentKind, classify, kind_of
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.regex import regex
from reconciler.secrets import (
    BLOCK,
    TAMPERED,
    UNKNOWN,
    is_ciphertext,
    is_secret_kind,
    leaves_in,
    names_secrets,
    read_block,
    with_stand_ins,
)
from reconciler.templates import read_template
from reconciler.yaml import read_yaml

_DATA: Final = frozenset({("", "Secret"), ("", "ConfigMap")})
_OPEN_FIELDS: Final = frozenset({"value", "args", "command"})
"""Fields that no interpreter reads: env values, args, commands."""
_WHOLE_FILE: Final = regex(rb"^(?:sops_(?:mac|version)=|\[sops\]\r?$)", re.MULTILINE)
"""A dotenv or INI file of sops."""


def read_encrypted(
    document: Document, file: StoreFile, before: Iterable[Template]
) -> tuple[Template | None, tuple[Problem, ...]]:
    """The template of an encrypted document, and every problem of it; None when one is an error.

    `before`: the templates of documents before it. Their block of sops has to be the same, as sops writes one for a
    file: else the whole file would have to be opened for each of its documents.
    """
    body = document.body
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if "kind" not in body:
        message = "a file that sops encrypted as a whole (binary); encrypt the manifest itself, as YAML or JSON"
        return None, (document.problem(UNKNOWN, message, BLOCK),)
    is_typed = all(isinstance(text, str) and not is_ciphertext(text) for text in (api_version, kind))
    if is_typed and (kind_of(str(api_version), str(kind)) is not DocumentKind.TEMPLATE or str(kind).endswith("List")):
        message = f"a {kind} cannot be encrypted: what it says must be known without a key; encrypt Secrets alone"
        return None, (document.problem(UNKNOWN, message, BLOCK),)
    sealed, faults = read_block(document, file)
    if sealed is None:
        return None, faults
    clear = {name: below for name, below in body.items() if name != BLOCK}
    template, problems = read_template(replace(document, body=with_stand_ins(clear)))
    if template is None:
        return None, problems
    hidden = _hidden_from_interpreters(document, template, clear)
    if hidden:
        return None, (*problems, *hidden)
    first = next((earlier.sealed for earlier in before if earlier.sealed is not None), sealed)
    if first != sealed:
        message = "the documents of a file have one block of sops, and this is another one; restore the file"
        return None, (*problems, document.problem(TAMPERED, message, BLOCK))
    named = with_value(clear, ("metadata",), template.body["metadata"])
    return replace(template, content=Content(tree={name: named[name] for name in clear}), sealed=first), problems


def _hidden_from_interpreters(document: Document, template: Template, body: JsonObject) -> tuple[Problem, ...]:
    """Return problems of encrypted fields that placement, dependencies or health need in plain text."""
    kind = template.identity[:2]
    if kind in _DATA or BUILT_IN_KINDS.by_kind.get(kind) is None:
        return ()
    message = "it has to be in plain text, since more than the cluster reads it; move what is secret into a Secret"
    return tuple(
        document.problem("sops-field-encrypted", message, *steps)
        for steps, value in leaves_in(body)
        if is_ciphertext(value) and _OPEN_FIELDS.isdisjoint([step for step in steps[-2:] if isinstance(step, str)])
    )


def stray_ciphertext(document: Document) -> Problem | None:
    """A value that was copied out of an encrypted document, which would land in a cluster as it is."""
    for steps, value in leaves_in(document.body):
        if is_ciphertext(value):
            message = "ciphertext of sops in a document that it did not encrypt; encrypt the document itself"
            return document.problem("sops-stray-ciphertext", message, *steps)
    return None


def of_whole_file(file: StoreFile) -> Problem | None:
    """Return the problem of a file that sops encrypted and that is no manifest; None: it is none."""
    if CIPHERTEXT_MARK.encode() not in file.data or _WHOLE_FILE.search(file.data) is None:
        return None
    message = "a dotenv or INI file that sops encrypted; encrypt a manifest, as YAML or JSON"
    return Problem(source=Source(file.path, 1), path="", code=UNKNOWN, message=message)


_MARKS: Final = (b"secret", b"stringdata", b"override", b"private key", b"last-applied-configuration")
"""Texts without which a file holds nothing secret, nor an override. Compared in lower case."""
_WITHHELD_BLOB: Final = "withheld:"


def without_secrets(file: StoreFile) -> StoreFile:
    """Return the file as it may be kept; the same one if nothing has to be left out.

    Every document stays on its line. `blob` differs between the two contents.
    """
    text = file.data.lower()
    if not (any(mark in text for mark in _MARKS) or names_secrets(file.data)):
        return file
    read = read_yaml(file.path, file.data)
    readable = [(document, _readable_part(document)) for document in read.documents]
    if not read.broken and all(body is document.body for document, body in readable):
        return file
    lines = [(document.line, body) for document, body in readable]
    lines += [(broken.line, _sketch(broken.body)) for broken in read.broken]
    return replace(file, blob=withheld_blob(file.blob), data=_written(sorted(lines, key=itemgetter(0))))


def withheld_blob(blob: str) -> str:
    """Return the blob name of the kept part of a content; of a kept part, the same."""
    return blob if blob.startswith(_WITHHELD_BLOB) else f"{_WITHHELD_BLOB}{blob}"


def _readable_part(document: Document) -> JsonObject:
    body = document.body
    kind = body.get("kind")
    document_kind = classify(document)
    if document_kind is DocumentKind.SKIPPED:
        return {}
    if document_kind is DocumentKind.ENCRYPTED:
        # It is authenticated with its whole file, which is rewritten without the withheld part.
        return _sketch(body)
    if document_kind is DocumentKind.RENDER_LOCK:
        return body  # Names of files and of contents.
    may_be_secret = not isinstance(kind, str) or is_secret_kind(kind) or kind in OVERRIDE_KINDS
    # No other kind has such a field: it was meant to be a Secret.
    return _sketch(body) if may_be_secret or "stringData" in body else body


def _sketch(body: JsonObject) -> JsonObject:
    """Return the type and name of a document, and the selectors of an override policy."""
    head = {key: body[key] for key in ("apiVersion", "kind") if isinstance(body.get(key), str)}
    named = {key: dig(body, "metadata", key) for key in ("name", "namespace")}
    metadata = {key: value for key, value in named.items() if isinstance(value, str)}
    is_override = head.get("kind") in OVERRIDE_KINDS
    selectors = dig(body, "spec", "resourceSelectors") if is_override else None
    spec = {} if selectors is None else {"spec": {"resourceSelectors": selectors}}
    return {**head, "metadata": metadata, **spec, WITHHELD: True}


def _written(documents: Iterable[tuple[int, JsonObject]]) -> bytes:
    """A line a document, each where it began."""
    text, line = b"", 1
    for begins, body in documents:
        if text:
            text, line = text + b"---\n", line + 1
        text += b"\n" * (begins - line) + orjson.dumps(body) + b"\n"
        line = max(begins, line) + 1
    return text
