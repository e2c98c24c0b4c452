"""Files of the store become a Fleet: each file by itself (memoised by content), then all of them together."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Final

from reconciler.api.content import CIPHERTEXT_MARK
from reconciler.api.fleet import Fleet, FrozenReach, Snapshot, StoreFile
from reconciler.api.problem import Document, Problem, Source
from reconciler.containment import internal_error, try_call
from reconciler.documents import type_fault
from reconciler.fleet.assemble import assemble
from reconciler.fleet.cluster_documents import parse_cluster
from reconciler.fleet.documents import DocumentKind, ParsedFile, classify, parse_promotion
from reconciler.fleet.encrypted_documents import of_whole_file, read_encrypted, stray_ciphertext
from reconciler.fleet.last_good import reach_of_document
from reconciler.fleet.settings import parse_fleet_settings
from reconciler.hydration import builds_on, is_kustomization, is_lock, parse_lock, parse_render
from reconciler.policy import parse_override_policy, parse_propagation_policy
from reconciler.rollouts import parse_rollout
from reconciler.templates import read_template
from reconciler.yaml import SUFFIXES, read_yaml

_Parser = Callable[[Document], tuple[Any, tuple[Problem, ...]]]
_PARSERS: Final[dict[DocumentKind, tuple[str, _Parser]]] = {
    DocumentKind.TEMPLATE: ("templates", read_template),
    DocumentKind.PROPAGATION_POLICY: ("propagation", parse_propagation_policy),
    DocumentKind.OVERRIDE_POLICY: ("overrides", parse_override_policy),
    DocumentKind.CLUSTER: ("clusters", parse_cluster),
    DocumentKind.FLEET_SETTINGS: ("settings", parse_fleet_settings),
    DocumentKind.ROLLOUT: ("rollouts", parse_rollout),
    DocumentKind.RENDER: ("renders", parse_render),
    DocumentKind.PROMOTION: ("promotions", parse_promotion),
    DocumentKind.RENDER_LOCK: ("locks", parse_lock),
}


def is_store_file(path: str) -> bool:
    """Return whether a file's name ends in .yaml, .yml or .json."""
    return path.endswith(SUFFIXES)


def memo_key(file: StoreFile) -> str:
    """Return the inputs of `parse_file`: content and path, since every source names the path."""
    return f"{file.blob}:{file.path}"


def parse(snapshot: Snapshot, cache: MutableMapping[str, ParsedFile] | None = None) -> Fleet:
    """Return the fleet of a snapshot. With a `cache`, only missing files are parsed, and removed ones leave it.

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


class ParsedAsRead:
    """Parses files one by one as they are read, so that the bytes of a large store are never held all at once."""

    def __init__(self, parsed: MutableMapping[str, ParsedFile]) -> None:
        """Add the content of files to `parsed`, by `memo_key`."""
        self._parsed = parsed
        self.count = 0
        """So many files were parsed."""

    def __call__(self, file: StoreFile) -> StoreFile:
        """Return the file without its data: its content has been parsed."""
        self._parsed[memo_key(file)] = parse_file(file)
        self.count += 1
        return StoreFile(path=file.path, blob=file.blob, data=b"")


def parse_file(file: StoreFile) -> ParsedFile:
    """Return the content of one file. Pure: the same path and data give an equal result; it never raises."""
    unread = FrozenReach(source=Source(file.path), everything=True)
    if file.faults:
        return ParsedFile(path=file.path, blob=file.blob, problems=file.faults, frozen=(unread,))
    parsed, fault = try_call(_parse_documents, file)
    if fault is None:
        assert parsed is not None, "without a fault there is a value"
        return parsed
    consequence = "nothing of it is read, and what it might concern stays as it is"
    problem = internal_error(fault, unread.source, file.path, consequence)
    return ParsedFile(path=file.path, blob=file.blob, problems=(problem,), frozen=(unread,))


_Found = dict[str, list[Any]]
"""The contents of the documents of a file, by the field of `ParsedFile`."""


def _parse_documents(file: StoreFile) -> ParsedFile:
    read = read_yaml(file.path, file.data)
    parts: _Found = {name: [] for name in ("problems", "frozen", "skipped", "builds_on")}
    parts |= {name: [] for name, _ in _PARSERS.values()}
    parts["problems"] += read.problems
    # A lock places no object, so a broken one freezes nothing.
    parts["frozen"] += map(reach_of_document, () if is_lock(file.path) else read.broken)
    # Searched once, not for each document.
    has_ciphertext = CIPHERTEXT_MARK.encode() in file.data
    whole = of_whole_file(file) if read.broken else None
    if whole is not None:
        parts["problems"].append(whole)
    for document in read.documents:
        fault = try_call(_add_document, document, parts, file, has_ciphertext).fault
        if fault is not None:
            consequence = "it is not read, and what it might concern stays as it is"
            parts["problems"].append(internal_error(fault, document.source, "this document", consequence))
            reach = try_call(reach_of_document, document).value
            parts["frozen"].append(reach or FrozenReach(source=document.source, everything=True))
    return ParsedFile(
        path=file.path,
        blob=file.blob,
        has_template_syntax=bool(read.broken) and b"{{" in file.data,
        **{name: tuple(values) for name, values in parts.items()},
    )


def _add_document(document: Document, parts: _Found, file: StoreFile, has_ciphertext: bool) -> None:
    kind = classify(document)
    if kind is DocumentKind.SKIPPED:
        parts["skipped"].append(document.source)
        if is_kustomization(document.path):
            parts["builds_on"].extend(builds_on(document))
        return
    may_be_stray = has_ciphertext and kind is not DocumentKind.ENCRYPTED
    stray = stray_ciphertext(document) if may_be_stray else None
    if stray is not None:
        parts["problems"].append(stray)
    elif kind in _PARSERS or kind is DocumentKind.ENCRYPTED:
        if kind is DocumentKind.ENCRYPTED:
            name, (value, remarks) = "templates", read_encrypted(document, file, parts["templates"])
        else:
            name, parser = _PARSERS[kind]
            value, remarks = parser(document)
        parts["problems"].extend(remarks)
        if value is not None:
            parts[name].append(value)
            return
        if kind in (DocumentKind.RENDER_LOCK, DocumentKind.PROMOTION):
            return
    else:
        parts["problems"].append(_refusal(kind, document))
    parts["frozen"].append(reach_of_document(document))


def _refusal(kind: DocumentKind, document: Document) -> Problem:
    if kind is DocumentKind.WITHHELD:
        message = "its values are not kept beside the journal; it stays as it is until the store can be followed again"
        return document.problem("secret-not-kept", message)
    fault = type_fault(document.body["apiVersion"], document.body["kind"])
    assert fault is not None, "a document is mistyped because of it"
    return document.problem(fault.code, fault.message, fault.field)
