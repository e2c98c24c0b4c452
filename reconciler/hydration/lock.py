"""Locks: the inputs of an output, and whether they are unchanged; and the names of the files of an output.

No binary is run, and known files are not read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.fleet import LOCK_NAME, Render, RenderLock, Served
from reconciler.api.problem import Document, Problem, Source
from reconciler.api.refs import listed
from reconciler.hydration.render_document import is_below, is_plain_path
from reconciler.incremental import by_key
from reconciler.regex import regex

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that makes a folder one of kustomize."""

_KEYS: Final = frozenset({"inputs", "outputs", "spec", "tool"})
_ID: Final = regex(r"[0-9a-f]{40}", re.ASCII)
_API: Final = regex(r"[A-Za-z0-9][A-Za-z0-9./-]{0,500}", re.ASCII)
_MOST_NAMED: Final = 3


def is_lock(path: str) -> bool:
    """Return whether a file's name is that of a lock."""
    return path.rpartition("/")[2] == LOCK_NAME


def blob_id(data: bytes) -> str:
    """The name that Git has for a content, in a repository with SHA-1."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def parse_lock(document: Document) -> tuple[RenderLock | None, tuple[Problem, ...]]:
    """Return the lock of a document; None with a problem if the command did not write it."""
    body = document.body
    if body.keys() - {"served"} == _KEYS and isinstance(body["spec"], str):
        inputs, outputs, tool, served = body["inputs"], body["outputs"], body["tool"], body.get("served", {})
        are_served = isinstance(served, dict) and all(
            isinstance(apis, list) and all(isinstance(api, str) and _API.fullmatch(api) for api in apis)
            for apis in served.values()
        )
        if _are_files(inputs) and _are_files(outputs) and _are_texts(tool) and are_served:
            seen = {variant: tuple(apis) for variant, apis in served.items()}
            lock = RenderLock(
                path=document.path, inputs=inputs, tool=tool, spec=body["spec"], outputs=outputs, served=seen
            )
            return lock, ()
    message = "this is no lock as the command writes it; run reconciler hydrate"
    return None, (document.problem("render-lock", message),)


def _are_files(found: Json) -> bool:
    return _are_texts(found) and all(is_plain_path(path) and _ID.fullmatch(blob) for path, blob in found.items())


def _are_texts(found: Json) -> bool:
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


def lock_text(
    render: Render,
    inputs: Mapping[str, str],
    tool: Mapping[str, str],
    outputs: Mapping[str, str],
    served: Served,
) -> bytes:
    """The lock as it is committed: sorted, a line an entry."""
    tree: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "spec": render.digest, "tool": tool}
    if served:
        tree["served"] = served
    return f"{json.dumps(tree, indent=2, sort_keys=True)}\n".encode()


def input_paths(render: Render, lock: RenderLock | None = None) -> tuple[str, ...]:
    """Return files and folders that a render reads, as far as the document and its lock show.

    The folders of kustomize that its folders lead to are those with a kustomization in the lock: while none of these
    files changes, no other one is led to.
    """
    found = set(kustomize_folders(render))
    if render.helm is not None:
        found |= {render.helm.path, *render.helm.values, *(path for each in render.variants for path in each.values)}
    if render.kustomize:
        for path in lock.inputs if lock is not None else ():
            folder, _, name = path.rpartition("/")
            if name in KUSTOMIZATIONS and folder:
                found.add(folder)
    return tuple(sorted(found))


def kustomize_folders(render: Render) -> tuple[str, ...]:
    """Return the folders that kustomize is run in."""
    return tuple(filter(None, (render.kustomize, *(variant.overlay for variant in render.variants))))


def staleness(
    render: Render, lock: RenderLock | None, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the problems of an output whose inputs and files have these blob ids. Pure; it starts nothing."""
    command = "run reconciler hydrate and commit what it writes"
    if lock is None:
        yield _problem(render, render.source, "render-stale", f"it was never rendered: {command}")
        return
    if lock.spec != render.digest:
        yield _problem(render, render.source, "render-stale", f"the document says something else than then: {command}")
    changed = _changed(lock.inputs, inputs)
    if changed:
        message = f"{listed(changed, _MOST_NAMED)} changed since {render.output} was made of it: {command}"
        yield _problem(render, render.source, "render-stale", message)
    for path in _changed(lock.outputs, outputs):
        message = f"this file is not as reconciler hydrate wrote it; change what it is made from, and {command}"
        yield _problem(render, Source(path), "render-edited", message)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _problem(render: Render, source: Source, code: str, message: str) -> Problem:
    return Problem(source=source, code=code, message=f"Render {render.name}: {message}")


def input_folders(renders: Iterable[Render], references: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return folders whose files are inputs and no documents: charts, and references of kustomizations.

    `references`: by folder of a kustomization the folders and files that it builds upon.
    """
    found: set[str] = set()
    pending: list[str] = []
    for render in renders:
        pending += kustomize_folders(render)
        if render.helm is not None:
            found |= {*input_paths(render)} - {*pending}
    while pending:
        folder = pending.pop()
        if folder not in found:
            found.add(folder)
            pending += references.get(folder, ())
    return frozenset(found)


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
    found = list(documents)
    is_large = sum(len(text) for _, text in found) > SPLIT_BYTES

    def file_of(body: JsonObject) -> str:
        kind, own = str(body.get("kind")), str(dig(body, "metadata", "name"))
        if "sops" in body:
            own = own if kind == "Secret" else _UNFIT.sub("-", f"{kind.lower()}-{own}")
            return f"secrets/{dig(body, 'metadata', 'namespace') or 'cluster'}/{own}.yaml"
        if not is_large:
            return name
        is_definition = kind == "CustomResourceDefinition"
        return f"crds/{own}.yaml" if is_definition else f"{name.removesuffix('.yaml')}-{kind.lower()}.yaml"

    return by_key((file_of(body), text) for body, text in found)
