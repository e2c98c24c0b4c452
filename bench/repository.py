"""Repositories of generated files, without a work tree."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pygit2

_AUTHOR = pygit2.Signature("bench", "bench@example.com", 1_700_000_000, 0)


def commit_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> str:
    """The id of a commit on main with these files over those of the commit before. A new repository is bare.

    Its first commit is packed, as a clone's is; later ones are loose objects, as a fetch of a few leaves them.
    """
    if folder.exists():
        repository = pygit2.Repository(str(folder))
        repository.index.read_tree(repository.head.peel(pygit2.Tree))
        parents = [repository.head.target]
    else:
        repository = pygit2.init_repository(str(folder), bare=True, initial_head="main")
        parents = []
    index = repository.index
    for path, data in files:
        index.add(pygit2.IndexEntry(path, repository.create_blob(data), pygit2.enums.FileMode.BLOB))
    tree = index.write_tree(repository)
    reference = "refs/heads/main"
    commit = repository.create_commit(reference, _AUTHOR, _AUTHOR, "bench", tree, parents)
    if not parents:
        repository.pack()
        for loose in (folder / "objects").glob("??"):
            shutil.rmtree(loose)
    return str(commit)
