"""The store that is in force: the last good revision, with the last good content of every broken file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping

from reconciler.model.fleet import Fleet, Snapshot, StoreFile
from reconciler.stages.assemble import assemble
from reconciler.stages.assemble_memo import AssembleMemo
from reconciler.stages.last_good import good_files, with_last_good
from reconciler.stages.parse import parse_file
from reconciler.stages.parsed_file import ParsedFile


class StoreInForce:
    """Parses snapshots; only files that changed are parsed again."""

    def __init__(self, good_blobs: Mapping[str, str], read_blob: Callable[[str, str], StoreFile | None]) -> None:
        """Begin with what the journal remembers.

        `good_blobs`: path to the blob that was good last. `read_blob`: path and blob to the file, None when the store
        no longer has it (a plain directory never has).
        """
        self._parsed: dict[str, ParsedFile] = {}
        self._assembled = AssembleMemo()
        self._good: dict[str, ParsedFile] = {}
        self._remembered = dict(good_blobs)
        self._read_blob = read_blob

    def parse(self, snapshot: Snapshot) -> Fleet:
        """The fleet of the snapshot. Slow for many new files: call it off the event loop."""
        gc.disable()
        try:
            fresh = self._parse_new(snapshot)
        finally:
            gc.freeze()
            gc.enable()
        files = [self._parsed[file.path] for file in snapshot.files]
        self._recall(fresh)
        in_force = with_last_good(files, self._good)
        fleet = assemble(snapshot.revision, in_force, snapshot.problems, self._assembled)
        self._good.update(good_files(fresh))
        return fleet

    def _parse_new(self, snapshot: Snapshot) -> list[ParsedFile]:
        """The files that are not as they were; those that are gone are forgotten."""
        known, fresh = self._parsed, list[ParsedFile]()
        for file in snapshot.files:
            parsed = known.get(file.path)
            if parsed is None or parsed.blob != file.blob:
                parsed = known[file.path] = parse_file(file)
                fresh.append(parsed)
        if len(known) > len(snapshot.files):
            for path in known.keys() - {file.path for file in snapshot.files}:
                del known[path]
                self._good.pop(path, None)
        return fresh

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
