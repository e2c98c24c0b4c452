"""The repository at a folder: never another one that libgit2 would find beside, around or inside of it.

Tree objects, that may be written by anyone: a few kilobytes can hold themselves thousands of times over.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag

from reconciler.errors import StoreError
from reconciler.store.file_walk import MAX_ENTRIES
from reconciler.store.git.pack_chains import CHAIN_MAX, packs_of
from reconciler.yaml import MAX_BYTES

ARTIFACTS: Final = "refs/fleet/artifacts/"
"""Before the 64 hex digits of a digest: the reference of the commit that an artifact of a registry became."""
_EXACTLY: Final = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
"""Left to itself, libgit2 passes over a broken `.git` and takes the folder itself, or the next repository above it."""


_DIGEST_LENGTH: Final = 64


@contextmanager
def using_repository(path: Path) -> Iterator[pygit2.Repository]:
    """The repository until the block ends.

    Raises:
        pygit2.GitError: there is none, or it cannot be opened.
    """
    repository = open_repository(path)
    try:
        yield repository
    finally:
        close(repository)


def close(repository: pygit2.Repository) -> None:
    """Free its memory at once: a service opens one every second, and garbage would add up.

    Its collections of branches and references refer back to it, so reference counting alone frees neither.
    """
    repository.free()
    vars(repository).clear()


def open_repository(path: Path) -> pygit2.Repository:
    """The repository whose work tree `path` is; where it has no `.git`, the bare one that `path` itself is.

    Raises:
        pygit2.GitError: it is none, or cannot be opened.
    """
    own = path / ".git"
    return pygit2.Repository(str(own if os.path.lexists(own) else path), _EXACTLY)


def oid_of(repository: Any, revision: str) -> Any:
    """The object id that a revision's full name stands for: that of the commit, for a digest of an artifact.

    Raises:
        ValueError: it is no full name.
    """
    found = repository.references.get(ARTIFACTS + revision) if len(revision) == _DIGEST_LENGTH else None
    return found.target if found is not None else pygit2.Oid(hex=revision)


def reference_folders(repository: Path) -> list[tuple[Path, bool]]:
    """Return folders that show a change of HEAD, packed-refs or a branch, and whether subfolders count too.

    A linked work tree has a HEAD of its own, and the rest with its main repository.
    """
    try:
        with using_repository(repository) as found:
            own = Path(found.path)
        pointer = own / "commondir"
        common = (own / pointer.read_text().strip()).resolve() if pointer.is_file() else own
    except (pygit2.GitError, OSError):  # reading says what is wrong
        return []
    folders = [(folder, False) for folder in dict.fromkeys((own, common)) if folder.is_dir()]
    return [*folders, (common / "refs", True)] if (common / "refs").is_dir() else folders


MAX_OBJECT_BYTES: Final = 64 * 2**20
"""Of a tree, a commit or a tag: more than as many names as a store can have; and of what any object is a delta of."""
MAX_CHAIN_BYTES: Final = 2**30
"""Of the bases over the size of a file that are unpacked with one object: half a second."""


def refuse_bomb(repository: Any, oid: Any) -> None:
    """Nothing, when an object may be unpacked. Headers alone are read.

    Raises:
        StoreError: it is larger than any tree, commit or tag of a store, or is unpacked with such objects.
    """
    refuse_large_bases(repository, oid)
    _, size = repository.odb.read_header(oid)
    if size > MAX_OBJECT_BYTES:
        raise StoreError(f"the object {oid} has {size:,} bytes, more than a tree or commit of a store can have")


def peeled(repository: Any, oid: Any) -> Any:
    """Return the object that a tag leads to over any others; of other objects the object itself.

    Raises:
        StoreError: one of them is too large to be unpacked.
        KeyError, pygit2.GitError: one of them is missing or corrupt.
    """
    refuse_bomb(repository, oid)
    found = repository[oid]
    while isinstance(found, pygit2.Tag):
        refuse_bomb(repository, found.target)
        found = repository[found.target]
    return found


def refuse_large_bases(repository: Any, oid: Any) -> None:
    """Nothing, when libgit2 unpacks little beside an object: of a delta, its data even for a header, and all bases.

    Raises:
        StoreError: more than that, or a pack that cannot be read.
    """
    try:
        for pack in packs_of(_objects(repository.path)):
            place = pack.place(bytes(oid.raw))
            sizes = [max(entry.size, entry.made) for entry in pack.chain(place)] if place is not None else []
            large = sum(size for size in sizes if size > MAX_BYTES + 1)
            if max(sizes, default=0) > MAX_OBJECT_BYTES or large > MAX_CHAIN_BYTES or len(sizes) > CHAIN_MAX + 1:
                raise StoreError(
                    f"the object {oid} is packed as a difference to {sum(sizes):,} bytes in {len(sizes):,} objects; "
                    "that is not unpacked (`git repack -adf` where the repository is served packs it anew)"
                )
    except (OSError, ValueError, IndexError, struct.error, zlib.error) as error:
        raise StoreError(f"the pack of the object {oid} cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _objects(path: str) -> str:
    """Return the folder of objects of Git's own folder; a linked work tree has them with its main repository."""
    pointer = Path(path, "commondir")
    return str((Path(path, pointer.read_text().strip()).resolve() if pointer.is_file() else Path(path)) / "objects")


def changed_entries(repository: Any, before: Any, after: Any) -> Iterator[str]:
    """Yield paths of non-folders that differ below two trees; either may be None. Equal subtrees are not entered.

    Raises:
        StoreError: more differs than a store can hold.
    """
    pending: list[tuple[str, Any, Any]] = [("", before, after)]
    seen = 0
    while pending:
        prefix, old_tree, new_tree = pending.pop()
        old = {item.name: item for item in old_tree} if old_tree is not None else {}
        new = {item.name: item for item in new_tree} if new_tree is not None else {}
        seen += len(old) + len(new)
        if seen > 2 * MAX_ENTRIES:
            raise StoreError(f"the commits differ in more than {MAX_ENTRIES:,} names")
        for name in old.keys() | new.keys():
            one, other = old.get(name), new.get(name)
            if one is not None and other is not None and one.id == other.id and one.filemode == other.filemode:
                continue
            trees = [item if item is not None and item.filemode == FileMode.TREE else None for item in (one, other)]
            if any(item is not None for item in trees):
                old_one, new_one = [_tree(repository, item.id) if item is not None else None for item in trees]
                pending.append((f"{prefix}{name}/", old_one, new_one))
            if any(item is not None and item.filemode != FileMode.TREE for item in (one, other)):
                yield prefix + name


_CHANGES_MAX: Final = 1_000
"""So many commits are looked through for the last change of a file."""


def last_change(repository: Any, commit: str, path: str) -> str:
    """Return the newest of a commit and its ancestors that changed a file; the commit itself where none is found."""
    found = peeled(repository, oid_of(repository, commit))
    for _ in range(_CHANGES_MAX):
        here = _entry(repository, found, path)
        parents = (peeled(repository, each) for each in found.parent_ids)
        same = next((parent for parent in parents if _entry(repository, parent, path) == here), None)
        if same is None:
            return str(found.id) if found.parent_ids or here else commit
        found = same
    return commit


def _entry(repository: Any, commit: Any, path: str) -> str:
    """Return the id of a file of a commit; empty: it has none."""
    oid = commit.tree_id
    for name in path.split("/"):
        found = _tree(repository, oid)
        if not isinstance(found, pygit2.Tree) or name not in found:
            return ""
        oid = found[name].id
    return str(oid)


def _tree(repository: Any, oid: Any) -> Any:
    refuse_bomb(repository, oid)
    return repository[oid]
