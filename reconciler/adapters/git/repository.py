"""The repository at a folder: never another one that libgit2 would find beside, around or inside of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import RepositoryOpenFlag

_EXACTLY: Final = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
"""Left to itself, libgit2 passes over a broken `.git` and takes the folder itself, or the next repository above it."""


@contextmanager
def opened(path: Path) -> Iterator[pygit2.Repository]:
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


def reference_folders(repository: Path) -> list[tuple[Path, bool]]:
    """Return folders that show a change of HEAD, packed-refs or a branch, and whether subfolders count too.

    A linked work tree has a HEAD of its own, and the rest with its main repository.
    """
    try:
        with opened(repository) as found:
            own = Path(found.path)
        pointer = own / "commondir"
        common = (own / pointer.read_text().strip()).resolve() if pointer.is_file() else own
    except (pygit2.GitError, OSError):  # reading says what is wrong
        return []
    folders = [(folder, False) for folder in dict.fromkeys((own, common)) if folder.is_dir()]
    return [*folders, (common / "refs", True)] if (common / "refs").is_dir() else folders
