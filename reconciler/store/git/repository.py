"""The repository at a folder: never another one that libgit2 would find beside, around or inside of it.

Tree objects, that may be written by anyone: a few kilobytes can hold themselves thousands of times over.

Descent among commits, within a limit of steps: a history may be written by anyone, as long as they like. libgit2 reads
the whole of each commit on its way, however large, and all of a history before it sorts it.
"""

from __future__ import annotations

import heapq
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import pygit2
from pygit2.enums import ConfigLevel, FileMode, ObjectType, RepositoryOpenFlag

from reconciler.api.refs import is_digest
from reconciler.errors import StoreError
from reconciler.store.file_walk import MAX_ENTRIES
from reconciler.store.git.pack_chains import CHAIN_MAX, packs_of
from reconciler.yaml import MAX_BYTES

FAULTS: Final = (pygit2.GitError, KeyError, ValueError, OSError)
"""Of an object that is missing or corrupt, or of a name that is none."""
ARTIFACTS: Final = "refs/fleet/artifacts/"
"""Before the 64 hex digits of a digest: the reference of the commit that an artifact of a registry became."""
_EXACTLY: Final = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
"""Left to itself, libgit2 passes over a broken `.git` and takes the folder itself, or the next repository above it."""


class CountedRepository(pygit2.Repository):
    """A repository, and how much of it was unpacked since it was opened, of large objects alone."""

    unpacked_bytes = 0


@contextmanager
def using_repository(path: Path) -> Iterator[CountedRepository]:
    """The repository until the block ends. Raises pygit2.GitError: there is none, or it cannot be opened."""
    repository = open_repository(path)
    try:
        yield repository
    finally:
        close(repository)


@contextmanager
def reporting(fault: str, kinds: tuple[type[Exception], ...] = FAULTS) -> Iterator[None]:
    """Raise StoreError with these words for a fault of libgit2 in the block; `kinds`: of which it may be."""
    try:
        yield
    except kinds as error:
        raise StoreError(f"{fault}: {error}") from error


def close(repository: pygit2.Repository) -> None:
    """Free its memory at once: a service opens one every second, and garbage would add up.

    Its collections of branches and references refer back to it, so reference counting alone frees neither.
    """
    repository.free()
    vars(repository).clear()


@cache
def skip_unreadable_settings() -> None:
    """Have libgit2 pass over settings of the user that may not be read, as git does: HOME may be that of another."""
    home = os.environ.get("HOME", "")
    folders = {ConfigLevel.GLOBAL: home, ConfigLevel.XDG: os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"}
    for level, folder in folders.items():
        try:
            Path(folder, ".gitconfig" if level is ConfigLevel.GLOBAL else "git/config").open("rb").close()
        except PermissionError:
            pygit2.settings.search_path[level] = ""
        except OSError:
            continue


def open_repository(path: Path) -> CountedRepository:
    """The repository whose work tree `path` is; where it has no `.git`, the bare one that `path` itself is.

    Raises pygit2.GitError: it is none, or cannot be opened.
    """
    own = path / ".git"
    skip_unreadable_settings()
    return CountedRepository(str(own if os.path.lexists(own) else path), _EXACTLY)


def missing_object(repository: pygit2.Repository, what: str, error: Exception) -> StoreError:
    """Return the error for an object that cannot be read. A partial clone lacks those that git fetches when asked."""
    way, borrowed = "", Path(repository.path, "objects/info/alternates")
    if any(entry.name.endswith(".promisor") for entry in repository.config):
        way = "; this clone is partial: fetch the rest with git fetch --refetch --no-filter, or clone without --filter"
    elif borrowed.exists():
        way = f"; it borrows objects of the folders in {borrowed}: bring them back, or clone again without --shared"
    return StoreError(f"{what} is missing or corrupt: {error}{way}")


def oid_of(repository: Any, revision: str) -> Any:
    """The object id that a revision's full name stands for: that of the commit, for a digest of an artifact.

    Raises ValueError: it is no full name.
    """
    reference = repository.references.get(ARTIFACTS + revision) if is_digest(revision) else None
    return reference.target if reference is not None else pygit2.Oid(hex=revision)


def reference_folders(repository: Path) -> list[tuple[Path, bool]]:
    """Return folders that show a change of HEAD, packed-refs or a branch, and whether subfolders count too.

    A linked work tree has a HEAD of its own, and the rest with its main repository.
    """
    try:
        with using_repository(repository) as opened:
            own = Path(opened.path)
        pointer = own / "commondir"
        common = (own / pointer.read_text().strip()).resolve() if pointer.is_file() else own
    except (pygit2.GitError, OSError):  # reading says what is wrong
        return []
    folders = [(folder, False) for folder in dict.fromkeys((own, common)) if folder.is_dir()]
    return [*folders, (common / "refs", True)] if (common / "refs").is_dir() else folders


MAX_OBJECT_BYTES: Final = 64 * 2**20
"""Of a tree: more than as many names as a store can have; and of what any object is a delta of."""
MAX_COMMIT_BYTES: Final = 2**20
"""Of a commit or a tag: twenty thousand parents, or a book as its message."""
MAX_TAGS: Final = 100
"""So many tags may lead to one another before one leads to a commit."""
MAX_CHAIN_BYTES: Final = 2**30
"""Of the bases over the size of a file that are unpacked with one object: half a second."""
MAX_UNPACKED_BYTES: Final = 2**32
"""Of all objects over 64 KiB that are inflated, with their bases, of a repository that was opened once: 20 seconds."""
_COPIES: Final = 16
"""So much faster are bytes copied from a base than inflated."""
_UNCOUNTED_BYTES: Final = 2**16


def refuse_bomb(repository: Any, oid: Any) -> None:
    """Nothing, when an object may be unpacked. Headers alone are read.

    Raises StoreError: it is larger than any tree, commit or tag of a store, or is unpacked with such objects.
    """
    refuse_large_bases(repository, oid)
    kind, size = repository.odb.read_header(oid)
    if size > (MAX_OBJECT_BYTES if kind == ObjectType.TREE else MAX_COMMIT_BYTES):
        raise StoreError(f"the object {oid} has {size:,} bytes, more than a tree or commit of a store can have")
    _count(repository, [size])


def peeled(repository: Any, oid: Any) -> Any:
    """Return the object that a tag leads to over any others; of other objects the object itself.

    Raises:
        StoreError: one of them is too large to be unpacked, or they are too many.
        KeyError, pygit2.GitError: one of them is missing or corrupt.
    """
    for _ in range(MAX_TAGS):
        refuse_bomb(repository, oid)
        target = repository[oid]
        if not isinstance(target, pygit2.Tag):
            return target
        oid = target.target
    raise StoreError(f"more than {MAX_TAGS} tags lead to one another; delete the tag that begins them")


def refuse_large_bases(repository: Any, oid: Any) -> None:
    """Nothing, when libgit2 unpacks little beside an object: of a delta, its data even for a header, and all bases.

    Raises StoreError: more than that, or a pack that cannot be read.
    """
    try:
        for pack in packs_of(_objects(repository.path)):
            place = pack.place(bytes(oid.raw))
            chain = [*pack.chain(place)] if place is not None else []
            sizes = [max(entry.size, entry.result_size) for entry in chain]
            large = sum(size for size in sizes if size > MAX_BYTES + 1)
            if max(sizes, default=0) > MAX_OBJECT_BYTES or large > MAX_CHAIN_BYTES or len(sizes) > CHAIN_MAX + 1:
                raise StoreError(
                    f"the object {oid} is packed as a difference to {sum(sizes):,} bytes in {len(sizes):,} objects; "
                    "that is not unpacked (`git repack -adf` where the repository is served packs it again)"
                )
            _count(repository, [entry.size + entry.result_size // _COPIES for entry in chain] if len(chain) > 1 else [])
    except (OSError, ValueError, IndexError, struct.error, zlib.error) as error:
        raise StoreError(f"the pack of the object {oid} cannot be read: {error}") from error


def _count(repository: Any, sizes: Iterable[int]) -> None:
    repository.unpacked_bytes += sum(size for size in sizes if size > _UNCOUNTED_BYTES)
    if repository.unpacked_bytes > MAX_UNPACKED_BYTES:
        raise StoreError(
            f"more than {MAX_UNPACKED_BYTES:,} bytes would be unpacked of large objects and what they are differences "
            "to (`git repack -adf` where the repository is served packs them again)"
        )


@lru_cache(maxsize=8)
def _objects(path: str) -> str:
    """Return the folder of objects of Git's own folder; a linked work tree has them with its main repository."""
    pointer = Path(path, "commondir")
    return str((Path(path, pointer.read_text().strip()).resolve() if pointer.is_file() else Path(path)) / "objects")


def changed_entries(repository: Any, before: Any, after: Any, most: int = 2 * MAX_ENTRIES) -> Iterator[str]:
    """Yield paths of non-folders that differ below two trees; either may be None. Equal subtrees are not entered.

    `most`: so many names of both are compared.
    Raises StoreError: more differs than a store can hold, or a name is none that Git writes.
    """
    pending: list[tuple[str, Any, Any]] = [("", before, after)]
    count = 0
    while pending:
        prefix, old_tree, new_tree = pending.pop()
        old, new = (entries_by_name(tree) if tree is not None else {} for tree in (old_tree, new_tree))
        count += len(old) + len(new)
        if count > most:
            raise StoreError(f"the commits differ in more than {most // 2:,} names")
        for name in old.keys() | new.keys():
            one, other = old.get(name), new.get(name)
            if one is not None and other is not None and one.id == other.id and one.filemode == other.filemode:
                continue
            trees = [item if item is not None and item.filemode == FileMode.TREE else None for item in (one, other)]
            if any(item is not None for item in trees):
                old_one, new_one = [tree_at(repository, item.id) if item is not None else None for item in trees]
                pending.append((f"{prefix}{name}/", old_one, new_one))
            if any(item is not None and item.filemode != FileMode.TREE for item in (one, other)):
                yield prefix + name


_CHANGES_MAX: Final = 1_000
"""So many commits, with their parents, are looked through for the last change of a file."""


def last_change(repository: Any, commit: str, path: str) -> Any:
    """Return the newest of a commit and its ancestors that changed a file; None: none of the first thousand did."""
    newest = peeled(repository, oid_of(repository, commit))
    here, left = _entry(repository, newest, path), iter(range(_CHANGES_MAX))
    while newest.parent_ids:
        parents = (commit_at(repository, each) for each, _ in zip(newest.parent_ids, left, strict=False))
        same = next((parent for parent in parents if _entry(repository, parent, path) == here), None)
        if same is None:
            return newest if next(left, None) is not None else None
        newest = same
    return newest if here else None


def is_same(repository: Any, one: str, other: str, path: str) -> bool:
    """Return whether a file is the same in two commits, or in none of them."""
    entries = (_entry(repository, peeled(repository, oid_of(repository, commit)), path) for commit in (one, other))
    return len({*entries}) == 1


def _entry(repository: Any, commit: Any, path: str) -> str:
    """Return the id of a file of a commit; empty: it has none."""
    oid, mode = commit.tree_id, FileMode.TREE
    for name in path.split("/"):
        folder: Any = tree_at(repository, oid) if mode == FileMode.TREE else ()
        if name not in folder:
            return ""
        oid, mode = folder[name].id, folder[name].filemode
    return str(oid)


def commit_at(repository: Any, oid: Any) -> pygit2.Commit:
    """Return a commit.

    Raises:
        StoreError: it is too large to be unpacked, or no commit.
        KeyError, pygit2.GitError: it is missing or corrupt.
    """
    refuse_bomb(repository, oid)
    commit = repository[oid]
    if not isinstance(commit, pygit2.Commit):
        raise StoreError(f"the object {oid} stands where a commit belongs, and is none")
    return commit


def tree_at(repository: Any, oid: Any) -> pygit2.Tree:
    """Return a folder.

    Raises:
        StoreError: it is too large to be unpacked, or no folder, whatever the mode of its entry says.
        KeyError, pygit2.GitError: it is missing or corrupt.
    """
    refuse_bomb(repository, oid)
    tree = repository[oid]
    if not isinstance(tree, pygit2.Tree):
        raise StoreError(f"the object {oid} stands where a folder belongs, and is none")
    return tree


def entries_by_name(tree: pygit2.Tree) -> dict[str, Any]:
    """Return the entries of a folder by their names.

    Raises StoreError: one is twice there, or such as leads to another folder. Git writes none of these, and what it
    would check out of them is not told.
    """
    entries = {(item.raw_name or b"").decode("utf-8", errors="surrogateescape"): item for item in tree}
    odd = [name for name in entries if name in ("", ".", "..") or "/" in name]
    if odd or len(entries) < len(tree):
        fault = f"the name {odd[0]!r}" if odd else "a name twice"
        raise StoreError(f"the folder {tree.id} has {fault}, which Git never writes: nothing is read of it")
    return entries


_WALKED_MAX: Final = 50_000
"""Steps from a commit to a parent: a second. What is older than all of these is older than any that matters."""


def is_ancestor(repository: Any, one: Any, other: Any) -> bool:
    """Return whether a commit is another one or comes before it, by their ids.

    Raises StoreError: a commit between them is too large, or none.
    """
    return bool(descendants(repository, [other, one])[one] & 1)


def descendants(repository: Any, commits: Iterable[Any]) -> dict[Any, int]:
    """Return by id of a commit which of some descend from it or are it: a bit for each, the first one's the lowest.

    A commit is walked again when another of them turns out to descend from it, so that times, which are what clocks of
    authors said, cost steps and alter nothing. The walk ends where all that is left is older than all of them.
    """
    marks = {commit: 1 << place for place, commit in enumerate(dict.fromkeys(commits))}
    whole = (1 << len(marks)) - 1
    queue = [_queued(repository, commit) for commit in marks]
    heapq.heapify(queue)
    waiting = {commit for commit in marks if marks[commit] != whole}  # in the queue, and not older than all
    steps = 0
    while waiting and steps < _WALKED_MAX:
        *_, commit, parents = heapq.heappop(queue)
        waiting.discard(commit)
        for parent in parents:
            steps += 1
            bits = marks.get(parent, 0) | marks[commit]
            if bits != marks.get(parent, 0):
                marks[parent] = bits
                heapq.heappush(queue, _queued(repository, parent))
                (waiting.discard if bits == whole else waiting.add)(parent)
    return marks


def _queued(repository: Any, oid: Any) -> tuple[int, str, Any, Any]:
    """Return a commit as walks keep it, those first that were made last: its time, name, id and parents."""
    try:
        commit = commit_at(repository, oid)
    except KeyError:  # as beyond the end of a shallow clone
        return 0, str(oid), oid, ()
    return -commit.commit_time, str(oid), oid, commit.parent_ids


def newest_first(repository: Any, commit: str) -> Iterator[Any]:
    """Yield a commit and those before it, the newest first as their times tell.

    Raises StoreError: one is too large, or none.
    """
    head = pygit2.Oid(hex=commit)
    queued, queue = {head}, [_queued(repository, head)]
    while queue and len(queued) <= _WALKED_MAX:
        *_, oid, parents = heapq.heappop(queue)
        yield repository[oid]
        for parent in parents:
            if parent not in queued:
                queued.add(parent)
                heapq.heappush(queue, _queued(repository, parent))
