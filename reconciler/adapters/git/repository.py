"""The repository at a folder: never another one that libgit2 would find beside, around or inside of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import RepositoryOpenFlag

_EXACTLY: Final = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.NO_DOTGIT
"""Left to itself, libgit2 passes over a broken `.git` and takes the folder itself, or the next repository above it."""


def open_repository(path: Path) -> pygit2.Repository:
    """The repository whose work tree `path` is; where it has no `.git`, the bare one that `path` itself is.

    Raises:
        pygit2.GitError: it is none, or cannot be opened.
    """
    own = path / ".git"
    return pygit2.Repository(str(own if os.path.lexists(own) else path), _EXACTLY)
