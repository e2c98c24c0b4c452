"""Tree objects, that may be written by anyone: a few kilobytes can hold themselves thousands of times over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pygit2.enums import FileMode

from reconciler.adapters.store.walk import MAX_ENTRIES
from reconciler.errors import StoreError

MAX_OBJECT_BYTES: Final = 64 * 2**20
"""Of a tree, a commit or a tag: more than as many names as a store can have."""


def refuse_bomb(odb: Any, oid: Any) -> None:
    """Nothing, when an object may be unpacked. Its header alone is read.

    Raises:
        StoreError: it is larger than any tree, commit or tag of a store.
    """
    _, size = odb.read_header(oid)
    if size > MAX_OBJECT_BYTES:
        raise StoreError(f"the object {oid} has {size:,} bytes, more than a tree or commit of a store can have")


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


def _tree(repository: Any, oid: Any) -> Any:
    refuse_bomb(repository.odb, oid)
    return repository[oid]
