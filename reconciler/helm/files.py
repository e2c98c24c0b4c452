"""Files that renders read and wrote, by the ids that Git has for them: of a commit for free, else by reading.

Checkouts of other repositories, and documents of other tools, as files: links are never followed, all is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from reconciler.api.fleet import LOCK_NAME, Fleet, Render, RenderLock
from reconciler.api.problem import Problem
from reconciler.errors import StoreError
from reconciler.hydration import StorePathKind, blob_id, input_paths, overlaps, problem_of, staleness
from reconciler.store.directory import DirectoryTree
from reconciler.store.file_walk import EntryKind, FolderEntry, StoreTree, Unreadable
from reconciler.store.ignore import IgnoreRules, is_ignored, with_rules
from reconciler.store.location import StoreKind, StoreLocation

MAX_FILE_BYTES: Final = 64 * 2**20
MAX_BYTES: Final = 256 * 2**20
MAX_FILES: Final = 20_000
_SHA1_LENGTH: Final = 40
_LEFT_OUT: Final = ("~", ".swp", ".swo", ".bak", ".DS_Store")
"""Ends of names that editors and file managers leave behind; no commit is meant to have them."""


class InputRefused(StoreError):
    """An input of a render is refused; the message is for people."""


class RenderFiles:
    """Files of one reading of a store, below folders that renders name. Links are never followed."""

    def __init__(self, tree: StoreTree) -> None:
        self._tree = tree

    def kind_at(self, path: str) -> StorePathKind:
        """Return the kind of entry at a path; a link is nothing."""
        entry = self._entry(path)
        kinds = {EntryKind.FILE: StorePathKind.FILE, EntryKind.FOLDER: StorePathKind.FOLDER}
        return kinds.get(entry.kind, StorePathKind.NOTHING) if entry is not None else StorePathKind.NOTHING

    def _entry(self, path: str) -> FolderEntry | None:
        # Each folder on the way is looked at: a link among them leads elsewhere.
        parts = path.split("/")
        for length in range(1, len(parts)):
            above = self._tree.entry("/".join(parts[:length]))
            if above is None or above.kind is not EntryKind.FOLDER:
                return None
        return self._tree.entry(path)

    def listed(self, paths: Iterable[str], *, without_links: bool = False) -> dict[str, FolderEntry]:
        """Every file at and below the paths, in the order of their names. `without_links`: links are passed over.

        Raises:
            InputRefused: a link, a device or a repository is among them, or there are too many.
            StoreError: the store cannot be read.
        """
        files: dict[str, FolderEntry] = {}
        pending = list(paths)
        while pending:
            path = pending.pop()
            try:
                entry = self._entry(path)
                if entry is None or path in files:
                    continue
                if entry.kind is EntryKind.FOLDER:
                    below = self._tree.children(path)
                    pending += [f"{path}/{each.name}" for each in below if not each.name.endswith(_LEFT_OUT)]
                elif entry.kind is EntryKind.FILE:
                    files[path] = entry
                elif not (without_links and entry.kind is EntryKind.LINK):
                    what = "a link" if entry.kind is EntryKind.LINK else "no ordinary file"
                    raise InputRefused(f"{path} is {what}; what is rendered is made of ordinary files")
            except Unreadable as error:
                raise InputRefused(f"{path}: {error}") from error
            if len(files) > MAX_FILES:
                raise InputRefused(f"there are more than {MAX_FILES:,} files; render less at once")
        return dict(sorted(files.items()))

    def ids(self, paths: Iterable[str]) -> dict[str, str]:
        """The blob ids of every file at and below the paths.

        Raises InputRefused, StoreError: as of `listed` and `read`.
        """
        ids_by_path: dict[str, str] = {}
        for path, entry in self.listed(paths).items():
            known = self._tree.blob(entry) or ""
            ids_by_path[path] = known if len(known) == _SHA1_LENGTH else blob_id(self.read(path, entry))
        return ids_by_path

    def read(self, path: str, entry: FolderEntry | None = None) -> bytes:
        """The content of a file. Raises InputRefused: there is none, or it is too large."""
        entry = entry or self._entry(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            raise InputRefused(f"{path} is no file of the store")
        try:
            data = self._tree.read(path, entry, MAX_FILE_BYTES + 1)[1]
        except Unreadable as error:
            raise InputRefused(f"{path}: {error}") from error
        if len(data) > MAX_FILE_BYTES:
            raise InputRefused(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        return data

    def staleness(self, render: Render, lock: RenderLock | None) -> Iterator[Problem]:
        """Yield the changes since an output was made, or why that cannot be said. A broken lock has its own problem."""
        try:
            inputs, outputs = self.ids(input_paths(render, lock)), self.ids([render.output])
        except InputRefused as error:
            yield problem_of(render, "render-refused", str(error))
            return
        has_lock = outputs.pop(f"{render.output}/{LOCK_NAME}", None)
        if lock is not None or not has_lock:
            yield from staleness(render, lock, inputs, outputs)


@contextmanager
def tree_of(location: StoreLocation, rev: str | None, *, as_files: bool) -> Iterator[StoreTree]:
    """The tree of a store: its files as they lie, or a commit, by the rules of `open_store`.

    Raises StoreError: it cannot be opened.
    """
    is_files = rev is None and as_files and location.kind is StoreKind.WORK_TREE
    if location.repository is None or is_files:
        with DirectoryTree(location.path) as tree:
            yield tree
        return
    # Imported here: pygit2 costs 90 ms, which a plain directory need not pay.
    from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415

    with GitStore(location.repository) as store:
        yield store.tree(store.resolve("HEAD" if rev is None else rev), location.subdir)


def lock_problems(fleet: Fleet, tree: StoreTree) -> tuple[Problem, ...]:
    """Return the problems of all renders of a fleet: out of date, edited, two variants for a cluster.

    Raises StoreError: an object of the store is missing or corrupt.
    """
    files = RenderFiles(tree)
    problems = list(overlaps(fleet.renders, fleet.clusters))
    for render in fleet.renders:
        problems += files.staleness(render, fleet.locks.get(render.lock_path))
    return tuple(problems)


def write_file(root: Path, name: str, data: bytes) -> None:
    """Put a file into a store at once, so that nobody reads half of it.

    Raises StoreError: a link is on the way, so that it would be written elsewhere.
    """
    path = root / name
    for folder in list(path.relative_to(root).parents)[:-1]:
        if (root / folder).is_symlink():
            raise StoreError(f"{folder} is a link, and nothing is written through one; use an ordinary folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}~")
    part.write_bytes(data)
    part.replace(path)


class FolderCheckout(RenderFiles):
    """A folder with a checkout. Paths are from it, "" is the folder itself; `.git` and other hidden names are not seen.

    `ignore_file`: the name of files with patterns of what is not listed, or empty.

    Every method raises StoreError: it cannot be read, a link is among the files, or there is too much.
    """

    def __init__(self, tree: DirectoryTree, ignore_file: str = "") -> None:
        super().__init__(tree)
        self._ignore_file = ignore_file
        self._rules: dict[str, IgnoreRules | None] = {}

    def kind_at(self, path: str) -> StorePathKind:
        """Return the kind of entry at a path; a link is nothing."""
        try:
            return StorePathKind.FOLDER if not path else super().kind_at(path)
        except Unreadable as error:
            raise StoreError(f"{path}: {error}") from error

    def listed(self, paths: Iterable[str], *, without_links: bool = False) -> dict[str, FolderEntry]:
        """Every file at and below the paths, in the order of their names. `without_links`: links are passed over."""
        names: list[str] = []
        for path in paths:
            names += self._top() if not path else [path]
        listed = super().listed(sorted(set(names)), without_links=without_links).items()
        return {path: one for path, one in listed if not (self._ignore_file and self._is_ignored(path))}

    def _is_ignored(self, path: str) -> bool:
        folders = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        rules = self._rules_of("", None)
        for folder in folders:
            if is_ignored(rules, folder, is_folder=True):
                return True
            rules = self._rules_of(folder, rules)
        return is_ignored(rules, path, is_folder=False)

    def _rules_of(self, folder: str, above: IgnoreRules | None) -> IgnoreRules | None:
        if folder not in self._rules:
            path = f"{folder}/{self._ignore_file}".lstrip("/")
            self._rules[folder] = above
            if super().kind_at(path) is StorePathKind.FILE:
                self._rules[folder], problems = with_rules(above, folder, self.read(path))
                for problem in problems:
                    raise StoreError(f"{path}:{problem.source.line}: {problem.message}")
        return self._rules[folder]

    def _top(self) -> Iterator[str]:
        """Yield the entries of the folder; a link leads elsewhere and is ignored."""
        try:
            for entry in self._tree.children(""):
                if not entry.name.startswith(".") and entry.kind in (EntryKind.FILE, EntryKind.FOLDER):
                    yield entry.name
        except Unreadable as error:
            raise StoreError(str(error)) from error


@contextmanager
def checkout_of(folder: Path, ignore_file: str = "") -> Iterator[FolderCheckout]:
    """A folder while it is read. `ignore_file`: as of `FolderCheckout`.

    Raises StoreError: it is no directory that can be read.
    """
    with DirectoryTree(folder) as tree:
        yield FolderCheckout(tree, ignore_file)
