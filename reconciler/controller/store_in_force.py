"""The store that is in force: the last good revision, with the last good content of every broken file."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.fleet import (
    AssemblyTables,
    Earlier,
    ParsedFile,
    assemble,
    emptied,
    memo_key,
    parse_file,
    says_nothing,
    with_last_good,
    without_later_twins,
)
from reconciler.store.directory import StorePast
from reconciler.store.ignore import is_ignore_file, without_doubtful
from reconciler.store.parse_cache import ParseCache

_UNSAVED_MAX: Final = 200
"""So many files at most are parsed again at the next start: saving touches the whole cache, and a commit few files."""

_OLDER_MAX: Final = 20_000
"""The limit of parsed files of older revisions: those that differ from the active one."""

_State = tuple[
    tuple[StoreFile, ...], list[ParsedFile], frozenset[str], frozenset[str], dict[str, ParsedFile], dict[str, str]
]


class StoreInForce:
    """Parses snapshots; only files that changed are parsed again."""

    def __init__(
        self,
        good_blobs: Mapping[str, str],
        past: StorePast,
        cache: ParseCache | None = None,
        *,
        parsed: Mapping[str, ParsedFile] = MappingProxyType({}),
        is_followed: bool = True,
    ) -> None:
        """Begin with the journal's state.

        `good_blobs`: path to the last good blob. `past`: earlier content of the store, as far as known. `cache`: files
        parsed before this start; `parsed`: such files by `memo_key`, of a command that keeps them itself.
        `is_followed`: files of a directory are read while they are written, so that one may be incomplete; False: a
        person chooses the moment.
        """
        self._stored: tuple[StoreFile, ...] = ()
        self._parsed: list[ParsedFile] = []
        self._broken: frozenset[str] = frozenset()
        self._gone: frozenset[str] = frozenset()
        """Paths of `_remembered` that the store does not have now."""
        self._assembled = AssemblyTables()
        self._good: dict[str, ParsedFile] = {}
        self._replaced: dict[str, ParsedFile] = {}
        self._remembered = dict(good_blobs)
        """Path to the blob that is in force, also where it is that of before; empty where nobody knows what was."""
        self._past = past
        self._cache = cache
        self._cached = parsed
        self._older: dict[str, ParsedFile] = {}
        self._unsaved = 0
        self._twins: frozenset[str] = frozenset()
        """Paths with documents that others said before them."""
        self._is_followed = is_followed
        self._may_be_half_written = False
        self._before: _State = (self._stored, self._parsed, self._broken, self._gone, self._good, self._remembered)

    def parse(self, snapshot: Snapshot) -> Fleet:
        """Return the fleet of the snapshot; after an exception the former one is active. Slow for many files."""
        try:
            return self._parse(snapshot)
        except Exception:
            self.reject()
            self._assembled = AssemblyTables()
            raise

    def _parse(self, snapshot: Snapshot) -> Fleet:
        self._before = (self._stored, self._parsed, self._broken, self._gone, dict(self._good), dict(self._remembered))
        if not self._remembered:
            doubtful = [file.path for file in snapshot.files if file.faults and is_ignore_file(file.path)]
            self._remembered = self._past.good_blobs(snapshot.revision, doubtful)
        # A commit is written as a whole: a file that it empties is meant to be empty.
        self._may_be_half_written = self._is_followed and snapshot.revision.startswith("dir:")
        gc.disable()
        try:
            fresh = self._parse_new(without_doubtful(snapshot.files, self._remembered))
            if self._cache is not None and self._unsaved > (_UNSAVED_MAX if self._before[0] else 0):
                parsed = zip(self._stored, self._parsed, strict=True)
                self._cache.save({memo_key(stored): file for stored, file in parsed})
                self._unsaved = 0
        finally:
            gc.enable()
        broken = {file.path for file in fresh if file.frozen}
        self._broken = (self._broken - {file.path for file in fresh}) | broken
        earlier = self._earlier(snapshot.revision)
        is_sound = not (self._broken or earlier.good)
        in_force = self._parsed if is_sound else list(with_last_good(self._parsed, earlier, self._replaced))
        fleet, twins = self._assemble(snapshot, in_force, self._assembled)
        was_twin = self._twins.difference(twins)
        settled = [file for file in self._parsed if file.path in was_twin] if was_twin else []
        self._remember([file for file in (*fresh, *settled) if file.path not in twins], earlier)
        self._twins = frozenset(twins)
        return fleet

    def _assemble(
        self, snapshot: Snapshot, files: Collection[ParsedFile], tables: AssemblyTables | None = None
    ) -> tuple[Fleet, Collection[str]]:
        """Return the fleet, and the paths with documents that others said before. `tables`: it is not an older one."""
        fleet = assemble(snapshot.revision, files, snapshot.problems, tables)
        if all(problem.code != "duplicate-identity" for problem in fleet.problems):
            return fleet, ()

        def states(now: Mapping[str, ParsedFile]) -> Iterator[Mapping[str, ParsedFile]]:
            if (blobs := self._remembered) and tables is not None:
                before = {
                    path: file if blobs.get(path) == file.blob else self._recalled(path) for path, file in now.items()
                }
                yield {path: file for path, file in before.items() if file is not None}
            yield from self._past.states_before(snapshot.revision, now)

        twins = without_later_twins(files, states)
        alone = [twins.get(file.path, file) for file in files]
        return assemble(snapshot.revision, alone, snapshot.problems, tables), twins.keys()

    def _earlier(self, revision: str) -> Earlier:
        """Return the last good content of paths that are broken now, or gone though nobody may have deleted them."""
        broken = self._broken
        if not self._remembered:
            # The first start of all, or a journal that was lost.
            read = {path for path in broken if not is_ignore_file(path)}
            return self._past.earlier(revision, {file.path for file in self._parsed}, read)
        in_the_way = self._past.in_the_way(revision, sorted(self._gone)) if self._gone else {}
        new = broken - self._remembered.keys()
        doubtful = (broken - new) | (self._gone if new else in_the_way.keys())
        good = {path: file for path in sorted(doubtful) if (file := self._recalled(path)) is not None}
        return Earlier(good=good, new=new, in_the_way=in_the_way)

    def _remember(self, fresh: Collection[ParsedFile], earlier: Earlier) -> None:
        if not (fresh or self._gone or earlier.good):
            return
        for path in self._gone - earlier.good.keys():
            self._remembered.pop(path, None)
            self._good.pop(path, None)
        self._good |= {file.path: file for file in fresh if not file.frozen}
        self._good |= earlier.good
        self._remembered |= {file.path: file.blob for file in fresh if not file.frozen}
        self._remembered |= {path: file.blob for path, file in earlier.good.items()}
        for path in self._broken - earlier.good.keys() - earlier.new:
            self._remembered.setdefault(path, "")
        self._gone = frozenset(earlier.good.keys() - {file.path for file in self._parsed})

    def fleet_at(self, snapshot: Snapshot) -> Fleet:
        """Return the fleet of an older revision, without effect on the active one; also in a thread beside `parse`."""
        files = parsed = self.files_at(snapshot)
        broken = {file.path for file in parsed if file.frozen and not is_ignore_file(file.path)}
        if broken:
            earlier = self._past.earlier(snapshot.revision, {file.path for file in parsed}, broken)
            files = list(with_last_good(parsed, earlier))
        return self._assemble(snapshot, files)[0]

    def files_at(self, snapshot: Snapshot) -> list[ParsedFile]:
        """Return the files of a revision as parsed. Active ones, or those asked for before, are not parsed again."""
        parsed, stored, cached = self._parsed, snapshot.files, self._older
        in_force = {(file.path, file.blob): file for file in parsed}
        lacking = [file for file in stored if (file.path, file.blob) not in in_force and memo_key(file) not in cached]
        if self._cache is not None and len(lacking) > _UNSAVED_MAX:
            cached = {**cached, **self._cache.load(lacking)}
        parsed_now, beside = [], {}
        for file in stored:
            same = in_force.get((file.path, file.blob))
            if same is None:
                key = memo_key(file)
                same = beside[key] = cached.get(key) or parse_file(file)
            parsed_now.append(same)
        older = {key: file for key, file in self._older.items() if key not in beside} | beside
        self._older = dict(list(older.items())[-_OLDER_MAX:])
        return parsed_now

    def reject(self) -> None:
        """Discard the last parsed snapshot and restore the state of the active revision."""
        self._stored, self._parsed, self._broken, self._gone, self._good, self._remembered = self._before

    def _parse_new(self, files: tuple[StoreFile, ...]) -> list[ParsedFile]:
        """Parse the files that are not as they were; those that are gone are noted."""
        if self._cache is not None and not self._stored:
            self._cached = self._cache.load(files)
        known = {file.path: file for file in self._parsed}
        parsed, fresh = [], []
        for file in files:
            known_file = known.get(file.path)
            if known_file is None or known_file.blob != file.blob:
                known_file = self._parse_file(file)
                fresh.append(known_file)
            parsed.append(known_file)
        paths = {file.path for file in files}
        self._broken &= paths
        self._gone = frozenset(self._remembered.keys() - paths)
        self._parsed, self._stored, self._cached = parsed, files, {}
        return fresh

    def _parse_file(self, file: StoreFile) -> ParsedFile:
        parsed = self._cached.get(memo_key(file)) if self._cached else None
        if parsed is None:
            parsed = parse_file(file)
            self._unsaved += 1
        if not (self._may_be_half_written and says_nothing(parsed)):
            return parsed
        earlier = self._recalled(file.path)
        if earlier is None:
            # Values of a chart are nobody's documents, and may have been edited.
            had_documents = not parsed.skipped and (self._remembered.get(file.path) or file.blob) != file.blob
        else:
            had_documents = not says_nothing(earlier)
        return emptied(parsed) if had_documents else parsed

    def _recalled(self, path: str) -> ParsedFile | None:
        """Return the last good content of a path: of this process, or of the journal's blob, if readable."""
        known = self._good.get(path)
        blob = self._remembered.get(path)
        if known is not None or not blob:
            return known
        stored = self._past.read_blob(path, blob)
        return parse_file(stored) if stored is not None else None

    @property
    def good_blobs(self) -> dict[str, str]:
        """Path to the blob in force, empty where none is known to be: what the journal has to remember."""
        return dict(self._remembered)
