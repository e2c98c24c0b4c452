"""What of a work tree a commit does not have: files that a person edited and may believe to be in force."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from reconciler.adapters.sources.location import StoreKind, StoreLocation, open_store
from reconciler.model.fleet import StoreFile


class Uncommitted(NamedTuple):
    """A file of the store, and what happened to it since the commit: `new`, `changed` or `deleted`."""

    path: str
    what: str

    def __str__(self) -> str:
        """`web.yaml (changed)`."""
        return f"{self.path} ({self.what})"


def uncommitted(location: StoreLocation) -> tuple[Uncommitted, ...]:
    """The files that lie otherwise than the commit at HEAD has them, by path; none where there is no work tree.

    The files are those that `diff` reads, so what it shows and a commit lacks is among them, ignored by Git or not.

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
