"""The past of a store in a Git repository: older content of its files, its commits and their order.

One commit after another is read: only blobs that the last snapshot lacks. What can change the meaning of other files
(links, ignore files, submodules, faults) makes it read all of them. Import it inside functions, as it brings pygit2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.rollouts import Ancestry
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.fleet import Earlier, ParsedFile
from reconciler.store.directory import StorePast, in_the_way, obstacles
from reconciler.store.file_walk import MAX_FILES, MAX_FOLDER_DEPTH, EntryKind, Unreadable, read_file, read_tree
from reconciler.store.git import commit_history
from reconciler.store.git.commit_history import blobs_before, displaced, earlier_of, good_in, states_of
from reconciler.store.git.snapshot import GitStore
from reconciler.store.ignore import IGNORE_FILE, is_document, is_misnamed, looks_like_document

_NAMES_MOST: Final = 20_000
"""Beside four times the files of the last snapshot so many names are compared; a tree with more is read as a whole."""


class SnapshotReader:
    """Reads commits of one repository; the last one that was read is kept."""

    def __init__(self, subdir: str = "") -> None:
        """Nothing is read yet. `subdir`: the store's folder in the repository."""
        self._subdir = subdir
        self._last: Snapshot | None = None
        self._is_plain = False

    def read(self, store: GitStore, commit: str) -> Snapshot:
        """The files of a commit, as `GitStore.snapshot` gives them. `store` may be opened again each time.

        Raises RevisionNotFound: the commit has no such folder; StoreError: an object is missing or corrupt.
        """
        snapshot = self._patched(store, commit, self._last) if self._last is not None and self._is_plain else None
        if snapshot is None:
            tree = store.tree(commit, self._subdir)
            snapshot = read_tree(commit, tree)
            self._is_plain = tree.is_plain and not snapshot.problems and not any(file.faults for file in snapshot.files)
        self._last = snapshot
        return snapshot

    def read_older(self, store: GitStore, commit: str) -> Snapshot:
        """An older commit, which shares its files with the last one. The next `read` begins where the last one ended.

        It may be called in another thread than `read`.
        Raises RevisionNotFound, StoreError: as `read`.
        """
        last, is_plain = self._last, self._is_plain
        snapshot = self._patched(store, commit, last) if last is not None and is_plain else None
        return snapshot if snapshot is not None else store.snapshot(commit, self._subdir)

    def _patched(self, store: GitStore, commit: str, last: Snapshot) -> Snapshot | None:
        """Return a snapshot with the differences; None if a difference may concern other files."""
        try:
            paths = store.changed_paths(last.revision, commit, self._subdir, _NAMES_MOST + 4 * len(last.files))
        except StoreError:
            return None  # The last commit may be gone with its history, or little of it is left.
        tree = store.tree(commit, self._subdir)
        files = {file.path: file for file in last.files}
        is_sorted = True
        for path in paths:
            # A path that concerns itself alone, and can be shown.
            is_simple = path.rpartition("/")[2] != IGNORE_FILE and path.isprintable()
            if not is_simple or path.count("/") > MAX_FOLDER_DEPTH:
                return None
            entry = tree.entry(path)
            if entry is None or entry.kind is EntryKind.FOLDER:
                files.pop(path, None)
                continue
            if entry.kind is not EntryKind.FILE:
                return None
            try:
                file = read_file(tree, path, path, entry) if is_document(path) or is_misnamed(path) else None
                if file is not None and is_document(path):
                    is_sorted = is_sorted and path in files
                    files[path] = file
                elif file is not None and looks_like_document(file.data):
                    return None
            except Unreadable:
                return None
        if len(files) > MAX_FILES:
            return None
        ordered: Iterable[StoreFile] = files.values() if is_sorted else (files[path] for path in sorted(files))
        return replace(last, revision=commit, files=tuple(ordered))


_STEPS_MAX: Final = 100
"""So many commits that a service did not read are looked at one by one; each costs the reading of what differs."""


class GitPast(StorePast):
    """The past of a store in a repository: its history. Who follows the repository says when it is another one."""

    def __init__(self, repository: Path, subdir: str) -> None:
        """Nothing is read yet. `subdir`: the store's folder in the repository."""
        self.repository = repository
        self.subdir = subdir
        self._reader = SnapshotReader(subdir)

    def recall(self, revision: str) -> Snapshot | None:
        """The files of a commit, as long as the repository has it."""
        with suppress(StoreError), GitStore(self.repository) as store:
            return self._reader.read_older(store, revision)
        return None

    def commits_since(self, former: str, head: str) -> tuple[str, ...]:
        """The commits after the former along first parents, the oldest first; the head alone where it is not there."""
        commits = [head]
        # A shallow clone ends with an error.
        with suppress(StoreError), GitStore(self.repository) as store:
            for commit in islice(store.first_parents(head), _STEPS_MAX):
                if commit == former:
                    return tuple(reversed(commits))
                commits.append(commit)
        return (head,)

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        """Return the ancestry of revisions to a head, as far as the repository has them."""
        return commit_history.ancestry(self.repository, revisions, head)

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """The commits that texts name. Tags are not fetched: in a clone of a URL, ids alone name one."""
        return commit_history.resolve_revisions(self.repository, texts)

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """The blob, as long as the repository has it."""
        with suppress(StoreError), GitStore(self.repository) as store:
            data = store.read_blob(blob)
            return StoreFile(path=path, blob=blob, data=data) if data is not None else None
        return None

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the obstacles of the commit in place of files or of folders above them."""
        with suppress(StoreError), GitStore(self.repository) as store:
            return in_the_way(store.tree(revision, self.subdir), paths)
        return {}

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the content of the commits before it, along first parents."""
        with suppress(StoreError), GitStore(self.repository) as store:
            past = earlier_of(store, store.first_parents(revision), self.subdir, paths, broken)
            there = displaced(store, revision, self.subdir, paths)
            return replace(past, good={**there.good, **past.good}, in_the_way=there.in_the_way)
        return Earlier()

    def states_before(self, revision: str, paths: Collection[str]) -> Iterator[Mapping[str, ParsedFile]]:
        """Yield the files as the commits before it have them, along first parents."""
        with suppress(StoreError), GitStore(self.repository) as store:
            yield from states_of(store, store.first_parents(revision), self.subdir, paths)

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return the blobs of a commit before it, if only that shows the ignored paths; there is no other memory."""
        if ignore_files:
            with suppress(StoreError), GitStore(self.repository) as store:
                return blobs_before(store, store.first_parents(revision), self.subdir, ignore_files)
        return {}


class WorkTreePast(StorePast):
    """The past of the files of a work tree as they lie: the commit that is checked out, and those before it.

    Files that lie there have no names that a repository knows.
    """

    def __init__(self, repository: Path, subdir: str) -> None:
        """Nothing is read yet. `subdir`: the store's folder in the repository."""
        self._repository = repository
        self._subdir = subdir

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """The content of a commit that is in force in place of a file."""
        return GitPast(self._repository, self._subdir).read_blob(path, blob)

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the content of HEAD and the commits before it, also in place of what something else bars now."""
        with suppress(StoreError, RevisionNotFound), GitStore(self._repository) as store:
            head = store.resolve("HEAD")
            past = earlier_of(store, chain([head], store.first_parents(head)), self._subdir, paths, broken)
            gone: dict[str, ParsedFile] = {}
            with suppress(StoreError):
                for commit in islice(chain([head], store.first_parents(head)), 2):
                    gone = {**good_in(store, commit, self._subdir, lambda path: path not in paths), **gone}
            blocked = obstacles(self._repository / self._subdir, gone)
            good = {**{path: gone[path] for path in blocked}, **past.good}
            return replace(past, good=good, in_the_way=blocked)
        return Earlier()

    def states_before(self, revision: str, paths: Collection[str]) -> Iterator[Mapping[str, ParsedFile]]:
        """Yield the files as HEAD and the commits before it have them."""
        with suppress(StoreError, RevisionNotFound), GitStore(self._repository) as store:
            head = store.resolve("HEAD")
            yield from states_of(store, chain([head], store.first_parents(head)), self._subdir, paths)
