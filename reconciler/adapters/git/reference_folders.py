"""Where on a disk it shows that a repository advances."""

from __future__ import annotations

from pathlib import Path

import pygit2

from reconciler.adapters.git.repository import opened


def reference_folders(repository: Path) -> list[tuple[Path, bool]]:
    """Folders in which a change of HEAD, packed-refs or a branch shows, and whether what is below counts too.

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
