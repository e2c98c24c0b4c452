"""Files of the store become a Fleet: each file by itself (memoised by content), then all of them together."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Final

from reconciler.model.fleet import Fleet, Reach, Snapshot, StoreFile
from reconciler.model.problem import Document, Problem, Source
from reconciler.stages.documents import type_fault
from reconciler.stages.fleet.assemble import assemble
from reconciler.stages.fleet.broken import reach_of_document, reach_of_text
from reconciler.stages.fleet.clusters import parse_cluster
from reconciler.stages.fleet.documents import DocumentKind, classify
from reconciler.stages.fleet.file import ParsedFile
from reconciler.stages.fleet.settings import parse_fleet_settings
from reconciler.stages.policies import parse_override_policy, parse_propagation_policy
from reconciler.stages.templates import read_template
from reconciler.stages.yaml import SUFFIXES, read_yaml

__all__ = ["ParsedFile", "assemble", "is_store_file", "memo_key", "parse", "parse_file"]

PARSER_VERSION: Final = 3
"""To be raised when the same text parses to something else: caches of parse results carry it."""

_Parser = Callable[[Document], tuple[Any, tuple[Problem, ...]]]
_PARSERS: Final[dict[DocumentKind, tuple[str, _Parser]]] = {
    DocumentKind.TEMPLATE: ("templates", read_template),
    DocumentKind.PROPAGATION_POLICY: ("propagation", parse_propagation_policy),
    DocumentKind.OVERRIDE_POLICY: ("overrides", parse_override_policy),
    DocumentKind.CLUSTER: ("clusters", parse_cluster),
    DocumentKind.FLEET_SETTINGS: ("settings", parse_fleet_settings),
}


def is_store_file(path: str) -> bool:
    """Whether a file's name says that it holds documents: .yaml, .yml, .json."""
    return path.endswith(SUFFIXES)


def memo_key(file: StoreFile) -> str:
    """What `parse_file` depends on: content and path, since every source names the path."""
    return f"{file.blob}:{file.path}"


def parse(snapshot: Snapshot, cache: MutableMapping[str, ParsedFile] | None = None) -> Fleet:
    """The fleet of a snapshot. With a `cache`, only files that it lacks are read, and those that are gone leave it.

    A caller with thousands of files switches the cyclic garbage collector off meanwhile: it costs as much as the parse.
    """
    if cache is None:
        return assemble(snapshot.revision, [parse_file(file) for file in snapshot.files], snapshot.problems)
    known = {memo_key(file): file for file in snapshot.files}
    for gone in [key for key in cache if key not in known]:
        del cache[gone]
    for key, file in known.items():
        if key not in cache:
            cache[key] = parse_file(file)
    return assemble(snapshot.revision, [cache[key] for key in known], snapshot.problems)


def parse_file(file: StoreFile) -> ParsedFile:
    """What one file says. Pure: the same path and content give an equal result."""
    read = read_yaml(file.path, file.data)
    problems: list[Problem] = list(read.problems)
    frozen: list[Reach] = [reach_of_text(broken) for broken in read.broken]
    skipped: list[Source] = []
    found: dict[str, list[Any]] = {field: [] for field, _ in _PARSERS.values()}
    for document in read.documents:
        kind = classify(document)
        if kind is DocumentKind.SKIPPED:
            skipped.append(document.source)
        elif kind is DocumentKind.ENCRYPTED:
            message = "SOPS ciphertext must not land in a cluster; decrypt it, or take it out of the store"
            problems.append(document.problem("sops-encrypted", message, "sops"))
            frozen.append(reach_of_document(document))
        elif kind is DocumentKind.WITHHELD:
            message = (
                "its values are not kept beside the journal; it stays as it is until the store can be followed again"
            )
            problems.append(document.problem("secret-not-kept", message))
            frozen.append(reach_of_document(document))
        elif kind is DocumentKind.MISTYPED:
            problems.append(_type_problem(document))
            frozen.append(reach_of_document(document))
        else:
            field, parser = _PARSERS[kind]
            value, remarks = parser(document)
            problems.extend(remarks)
            if value is None:
                frozen.append(reach_of_document(document))
            else:
                found[field].append(value)
    return ParsedFile(
        path=file.path,
        blob=file.blob,
        problems=tuple(problems),
        frozen=tuple(frozen),
        skipped=tuple(skipped),
        has_template_syntax=bool(read.broken) and b"{{" in file.data,
        **{field: tuple(values) for field, values in found.items()},
    )


def _type_problem(document: Document) -> Problem:
    fault = type_fault(document.body["apiVersion"], document.body["kind"])
    assert fault is not None, "a document is mistyped because of it"
    return document.problem(fault.code, fault.message, fault.field)
