"""Uncommitted files of a work tree: a person edited them and may believe them to be active."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from reconciler.adapters.sources.location import StoreKind, StoreLocation, open_store
from reconciler.model.fleet import StoreFile


class Uncommitted(NamedTuple):
    """A file of the store, and its change since the commit: `new`, `changed` or `deleted`."""

    path: str
    what: str

    def __str__(self) -> str:
        """`web.yaml (changed)`."""
        return f"{self.path} ({self.what})"


def uncommitted(location: StoreLocation) -> tuple[Uncommitted, ...]:
    """Return the files that differ from the commit at HEAD, by path; none without a work tree.

    The files are those of `diff`, so every file that it shows and a commit lacks is among them.

    Raises:
        StoreError: the files or the commit cannot be read.
    """
    if location.kind is not StoreKind.WORK_TREE:
        return ()
    lying = {file.path: file for file in open_store(location, as_files=True).files}
    committed = {file.path: file for file in open_store(location, rev="HEAD").files}
    return tuple(sorted(_differences(lying, committed)))


def _differences(lying: dict[str, StoreFile], committed: dict[str, StoreFile]) -> Iterator[Uncommitted]:
    for path in lying.keys() | committed.keys():
        if path not in committed:
            yield Uncommitted(path, "new")
        elif path not in lying:
            yield Uncommitted(path, "deleted")
        elif _blob_id(lying[path].data) != committed[path].blob:
            yield Uncommitted(path, "changed")


def _blob_id(data: bytes) -> str:
    """As Git names the content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
