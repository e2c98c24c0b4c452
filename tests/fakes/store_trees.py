"""Stores for tests: the same files as a directory and as a commit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pygit2

from reconciler.api.fleet import Snapshot
from reconciler.api.problem import Problem

AUTHOR = pygit2.Signature("Ann", "ann@example.com", 1_700_000_000, 0)


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder. A text `-> TARGET` makes a link."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            target.symlink_to(content.removeprefix("-> "))
        else:
            target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def commit_all(root: Path, message: str = "change", *, new: bool = False) -> str:
    """Commit everything in a work tree; the commit's id. `new` makes the repository."""
    repository = pygit2.init_repository(str(root), initial_head="main") if new else pygit2.Repository(str(root))
    repository.index.add_all()
    for entry in list(repository.index):
        if not os.path.lexists(root / entry.path):
            repository.index.remove(entry.path)
    repository.index.write()
    tree = repository.index.write_tree()
    parents = [] if repository.head_is_unborn else [repository.head.target]
    return str(repository.create_commit("HEAD", AUTHOR, AUTHOR, message, tree, parents))


def forged_repository(folder: Path, of: Path, commit: str, *, own_objects: bool = False) -> None:
    """Ordinary files that make a folder look like a bare repository at a commit, as a pull request can add them.

    `of`: the work tree whose objects it borrows, or copies (`own_objects`).
    """
    objects = os.path.relpath(of / ".git/objects", folder / "objects")
    write_files(
        folder,
        {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{commit}\n", "config": "[core]\n\tbare = true\n"},
    )
    if own_objects:
        shutil.copytree(of / ".git/objects", folder / "objects", dirs_exist_ok=True)
    else:
        write_files(folder, {"objects/info/alternates": f"{objects}\n"})


def problems_of(snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return what is said of a store: remarks, and why files of it cannot be read."""
    return (*snapshot.problems, *(fault for file in snapshot.files for fault in file.faults))
