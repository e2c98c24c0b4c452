"""Obstacles in the place of a store's file: something else in its place is no deletion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.adapters.store.walk import EntryKind, StoreTree, Unreadable, resolved

_WORDS: Final = {
    EntryKind.FILE: "a file",
    EntryKind.FOLDER: "a folder",
    EntryKind.REPOSITORY: "a repository of its own (a submodule)",
    EntryKind.SPECIAL: "a pipe, socket or device",
}


def in_the_way(tree: StoreTree, paths: Iterable[str]) -> dict[str, str]:
    """Return the obstacles in the place of missing files, or of folders above them, in words.

    A path without one, or of a file that is no longer read as a document, is left out: it was deleted on purpose.
    """
    found = ((path, _obstacle(tree, path)) for path in paths)
    return {path: words for path, words in found if words}


def _obstacle(tree: StoreTree, path: str) -> str:
    real, names = "", path.split("/")
    for number, name in enumerate(names, start=1):
        shown = "/".join(names[:number])
        try:
            there = resolved(tree, f"{real}/{name}" if real else name)
        except Unreadable as error:
            return f"{shown} cannot be read: {error}"
        if there is None:
            return ""
        real, entry = there
        wanted = EntryKind.FILE if number == len(names) else EntryKind.FOLDER
        if entry.kind is not wanted:
            return f"{shown} is {_WORDS[entry.kind]} now"
    return ""
