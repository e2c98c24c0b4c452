"""The store that is in force: the last good revision, with the last good content of every broken file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

from reconciler.model.fleet import Fleet, Snapshot, StoreFile
from reconciler.stages.assemble import assemble
from reconciler.stages.last_good import good_files, with_last_good
from reconciler.stages.parse import memo_key, parse_file
from reconciler.stages.parsed_file import ParsedFile


class StoreInForce:
    """Parses snapshots; only files that changed are parsed again."""

    def __init__(self, good_blobs: Mapping[str, str], read_blob: Callable[[str, str], StoreFile | None]) -> None:
        """Begin with what the journal remembers.

        `good_blobs`: path to the blob that was good last. `read_blob`: path and blob to the file, None when the store
        no longer has it (a plain directory never has).
        """
        self._cache: dict[str, ParsedFile] = {}
        self._good: dict[str, ParsedFile] = {}
        self._remembered = dict(good_blobs)
        self._read_blob = read_blob

    def parse(self, snapshot: Snapshot) -> Fleet:
        """The fleet of the snapshot. Slow for many new files: call it off the event loop."""
        gc.disable()
        try:
            files = self._files(snapshot)
        finally:
            gc.freeze()
            gc.enable()
        self._recall(files)
        fleet = assemble(snapshot.revision, with_last_good(files, self._good), snapshot.problems)
        present = {file.path for file in files}
        self._good = {path: file for path, file in self._good.items() if path in present} | good_files(files)
        return fleet

    def _files(self, snapshot: Snapshot) -> list[ParsedFile]:
        fresh: dict[str, ParsedFile] = {}
        for file in snapshot.files:
            key = memo_key(file)
            fresh[key] = self._cache.get(key) or parse_file(file)
        self._cache = fresh
        return list(fresh.values())

    def _recall(self, files: list[ParsedFile]) -> None:
        """After a start: what was good of the files that are broken now, as far as it can still be read."""
        for file in files:
            blob = self._remembered.get(file.path)
            if file.frozen and file.path not in self._good and blob:
                stored = self._read_blob(file.path, blob)
                if stored is not None:
                    self._good[file.path] = parse_file(stored)

    @property
    def good_blobs(self) -> dict[str, str]:
        """Path to the blob in force: what the journal has to remember."""
        return {path: file.blob for path, file in self._good.items()}
