"""The demo's fleet store: the example as a Git repository, with commits made as a person would make them."""

from __future__ import annotations

import shutil
from importlib.metadata import files
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import DiffStatsFormat

from reconciler.errors import ConfigurationError

MAIN: Final = "main"
_BEGAN_S: Final = 1_767_225_600
"""The first commit's time. It is fixed, so that every demo has the same commit ids."""
_CHECKED_OUT: Final = Path(__file__).parents[3] / "examples/fleet-repo"
_INSTALLED: Final = "share/fleet-reconciler/fleet-repo/fleet.yaml"


def example_store() -> Path:
    """The example store: that of the source tree, else the one that was installed with the package.

    Raises:
        ConfigurationError: neither is there.
    """
    if _CHECKED_OUT.is_dir():
        return _CHECKED_OUT
    for file in files("fleet-reconciler") or ():
        if file.as_posix().endswith(_INSTALLED):
            return Path(str(file.locate())).resolve().parent
    raise ConfigurationError("the example store was not installed along; run the demo in a source tree")


class DemoRepository:
    """A work tree with a branch `main` that only moves forward."""

    def __init__(self, folder: Path) -> None:
        """Copy the example store into the folder and commit all of it."""
        shutil.copytree(example_store(), folder)
        self.folder = folder
        self._commits = 0
        self._repository = pygit2.init_repository(str(folder), initial_head=MAIN)
        self._commit("HEAD", "Begin with the example store", "Mei", [])

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self.folder / path).read_text(encoding="utf-8")

    def propose(self, branch: str, path: str, text: str, subject: str, *, author: str) -> str:
        """Write one file and commit it on a new branch from `main`, which is checked out then; the commit id."""
        base = self._repository.branches.local[MAIN].peel(pygit2.Commit)
        self._repository.branches.local.create(branch, base)
        self._repository.set_head(f"refs/heads/{branch}")
        (self.folder / path).write_text(text, encoding="utf-8")
        return self._commit("HEAD", subject, author, [base.id])

    def merge(self, branch: str) -> None:
        """Fast-forward `main` to the branch, and check it out."""
        reference = self._repository.branches.local[branch]
        self._repository.branches.local[MAIN].set_target(reference.target)
        self._repository.set_head(f"refs/heads/{MAIN}")
        reference.delete()

    def patch(self, branch: str) -> str:
        """Return the output of `git diff -U2 main BRANCH`."""
        return str(self._diff(branch).patch or "")

    def stat(self, branch: str) -> str:
        """Return the output of `git diff --stat main BRANCH`."""
        return str(self._diff(branch).stats.format(DiffStatsFormat.FULL, 80))

    @property
    def revision(self) -> str:
        """The commit that `main` leads to."""
        return str(self._repository.branches.local[MAIN].target)

    def _diff(self, branch: str) -> pygit2.Diff:
        main, other = (self._repository.branches.local[name].peel(pygit2.Commit) for name in (MAIN, branch))
        return self._repository.diff(main, other, context_lines=2)

    def _commit(self, reference: str, subject: str, author: str, parents: list[pygit2.Oid]) -> str:
        index = self._repository.index
        index.add_all()
        index.write()
        who = pygit2.Signature(author, f"{author.lower()}@example.com", _BEGAN_S + 3600 * self._commits, 0)
        self._commits += 1
        made = self._repository.create_commit(reference, who, who, f"{subject}\n", index.write_tree(), parents)
        return str(made)
