"""Locks: the inputs of an output, and whether they are unchanged; and the names of the files of an output.

No binary is run, and known files are not read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec

from reconciler.api.content import JsonObject, dig
from reconciler.api.fleet import LOCK_NAME, Render, RenderLock, Served
from reconciler.api.problem import Document, Problem, Source
from reconciler.api.refs import listed
from reconciler.decoding import prepared
from reconciler.hydration.render_document import inputs_named, is_below, is_plain_path, kustomize_folders, problem_of
from reconciler.incremental import by_key
from reconciler.regex import regex

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that makes a folder one of kustomize."""

_KEYS: Final = frozenset({"inputs", "outputs", "spec", "tool"})
_ID: Final = regex(r"[0-9a-f]{40}", re.ASCII)
_API: Final = regex(r"[A-Za-z0-9][A-Za-z0-9./-]{0,500}", re.ASCII)
_MOST_NAMED: Final = 3

prepared(RenderLock)


def is_lock(path: str) -> bool:
    """Return whether a file's name is that of a lock."""
    return path.rpartition("/")[2] == LOCK_NAME


def blob_id(data: bytes) -> str:
    """The name that Git has for a content, in a repository with SHA-1."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def parse_lock(document: Document) -> tuple[RenderLock | None, tuple[Problem, ...]]:
    """Return the lock of a document; None with a problem if the command did not write it."""
    body = document.body
    try:
        is_whole = body.keys() - {"served"} == _KEYS
        lock = msgspec.convert({**body, "path": document.path}, RenderLock) if is_whole else None
    except msgspec.ValidationError:
        lock = None
    if lock is not None:
        files, apis = (*lock.inputs.items(), *lock.outputs.items()), chain(*lock.served.values())
        if all(is_plain_path(path) and _ID.fullmatch(blob) for path, blob in files) and all(map(_API.fullmatch, apis)):
            return lock, ()
    message = "this is no lock as the command writes it; run reconciler hydrate"
    return None, (document.problem("render-lock", message),)


def lock_text(
    render: Render, inputs: Mapping[str, str], tool: Mapping[str, str], outputs: Mapping[str, str], served: Served
) -> bytes:
    """The lock as it is committed: sorted, a line an entry."""
    tree: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "spec": render.digest, "tool": tool}
    if served:
        tree["served"] = served
    return f"{json.dumps(tree, indent=2, sort_keys=True)}\n".encode()


def input_paths(render: Render, lock: RenderLock | None) -> tuple[str, ...]:
    """Return files and folders that a render reads, as far as the document and its lock show.

    The folders of kustomize that its folders lead to are those with a kustomization in the lock: while none of these
    files changes, no other one is led to.
    """
    paths = set(inputs_named(render))
    for path in lock.inputs if lock is not None and render.kustomize else ():
        folder, _, name = path.rpartition("/")
        if name in KUSTOMIZATIONS and folder:
            paths.add(folder)
    return tuple(sorted(paths))


def staleness(
    render: Render, lock: RenderLock | None, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the problems of an output whose inputs and files have these blob ids. Pure; it starts nothing."""
    command = "run reconciler hydrate and commit what it writes"
    if lock is None:
        yield problem_of(render, "render-stale", f"it was never rendered: {command}")
        return
    if lock.spec != render.digest:
        yield problem_of(render, "render-stale", f"the document says something else than then: {command}")
    changed = _changed(lock.inputs, inputs)
    if changed:
        message = f"{listed(changed, _MOST_NAMED)} changed since {render.output} was made of it: {command}"
        yield problem_of(render, "render-stale", message)
    for path in _changed(lock.outputs, outputs):
        message = f"this file is not as reconciler hydrate wrote it; change what it is made from, and {command}"
        yield problem_of(render, "render-edited", message, Source(path))


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def input_folders(renders: Iterable[Render], references: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return folders whose files are inputs and no documents: charts, and references of kustomizations.

    `references`: by folder of a kustomization the folders and files that it builds upon.
    """
    folders: set[str] = set()
    pending: list[str] = []
    for render in renders:
        pending += kustomize_folders(render)
        folders |= inputs_named(render) - {*pending}
    while pending:
        folder = pending.pop()
        if folder not in folders:
            folders.add(folder)
            pending += references.get(folder, ())
    return frozenset(folders)


def is_input(path: str, folders: frozenset[str]) -> bool:
    """Return whether a file is in one of the folders."""
    return any(is_below(path, folder) for folder in folders)


_UNFIT: Final = regex(r"[^a-z0-9.-]")
SPLIT_BYTES: Final = 2**20
"""A file of more is split by kind."""


def split_file(name: str, documents: Iterable[tuple[JsonObject, str]]) -> dict[str, list[str]]:
    """Return the texts of the documents by file name. `documents`: each with its text; `name`: the file of all.

    sops has one block for a file, so each encrypted document has one of its own. A large file is split by kind, and
    each CustomResourceDefinition is a file.
    """
    pairs = list(documents)
    is_large = sum(len(text) for _, text in pairs) > SPLIT_BYTES

    def file_of(body: JsonObject) -> str:
        kind, own = str(body.get("kind")), str(dig(body, "metadata", "name"))
        if "sops" in body:
            own = own if kind == "Secret" else _UNFIT.sub("-", f"{kind.lower()}-{own}")
            return f"secrets/{dig(body, 'metadata', 'namespace') or 'cluster'}/{own}.yaml"
        if not is_large:
            return name
        is_definition = kind == "CustomResourceDefinition"
        return f"crds/{own}.yaml" if is_definition else f"{name.removesuffix('.yaml')}-{kind.lower()}.yaml"

    return by_key((file_of(body), text) for body, text in pairs)
