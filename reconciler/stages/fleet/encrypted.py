"""A document that sops encrypted becomes a template as it is: its ciphertext is its body, and no key is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from reconciler.interpreters.registry import BUILT_IN_KINDS
from reconciler.model.content import Content
from reconciler.model.fleet import StoreFile, Template
from reconciler.model.problem import Document, Problem, Source
from reconciler.model.tree import JsonObject, with_value
from reconciler.regex import regex
from reconciler.stages.fleet.documents import DocumentKind, kind_of
from reconciler.stages.sealed import (
    BLOCK,
    MARK,
    TAMPERED,
    UNKNOWN,
    is_ciphertext,
    leaves_in,
    read_block,
    with_stand_ins,
)
from reconciler.stages.templates import read_template

_DATA: Final = frozenset({("", "Secret"), ("", "ConfigMap")})
_OPEN_FIELDS: Final = frozenset({"value", "args", "command"})
"""Fields that no interpreter reads: env values, args, commands."""
_WHOLE_FILE: Final = regex(rb"^(?:sops_(?:mac|version)=|\[sops\]\r?$)", re.MULTILINE)
"""A dotenv or INI file of sops."""


def read_encrypted(document: Document, file: StoreFile) -> tuple[Template | None, tuple[Problem, ...]]:
    """The template of an encrypted document, and every problem of it; None when one is an error."""
    body = document.body
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if "kind" not in body:
        message = "a file that sops encrypted as a whole (binary); encrypt the manifest itself, as YAML or JSON"
        return None, (document.problem(UNKNOWN, message, BLOCK),)
    is_typed = all(isinstance(told, str) and not is_ciphertext(told) for told in (api_version, kind))
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
    named = with_value(clear, ("metadata",), template.body["metadata"])
    return replace(template, body=Content(tree=_in_order(clear, named)), sealed=sealed), problems


def with_one_block(
    document: Document, template: Template, before: Iterable[Template], problems: tuple[Problem, ...]
) -> tuple[Template | None, tuple[Problem, ...]]:
    """The template, unless its block is another one than those of documents before it: sops writes one for a file.

    Else the whole file would have to be opened for each of its documents.
    """
    first = next((found.sealed for found in before if found.sealed is not None), template.sealed)
    if first == template.sealed:
        return replace(template, sealed=first), problems
    message = "the documents of a file have one block of sops, and this is another one; restore the file"
    return None, (*problems, document.problem(TAMPERED, message, BLOCK))


def _in_order(written: JsonObject, made: JsonObject) -> JsonObject:
    return {name: made[name] for name in written}


def _hidden_from_interpreters(document: Document, template: Template, body: JsonObject) -> tuple[Problem, ...]:
    """Return problems of encrypted fields that placement, dependencies or health need in clear."""
    kind = template.identity[:2]
    if kind in _DATA or BUILT_IN_KINDS.by_kind.get(kind) is None:
        return ()
    message = "it has to be in clear, since more than the cluster reads it; move what is secret into a Secret"
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
    if MARK.encode() not in file.data or _WHOLE_FILE.search(file.data) is None:
        return None
    message = "a dotenv or INI file that sops encrypted; encrypt a manifest, as YAML or JSON"
    return Problem(source=Source(file.path, 1), path="", code=UNKNOWN, message=message)
