"""The active content of the store: its revision, and the last good content of its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.mirror import Mirror
from reconciler.adapters.journal.rows import GOOD_BLOB, META

_REVISION: Final = "revision_in_force"


class StoreBook:
    """The part of a journal that is about the store."""

    _file: JournalFile
    _mirror: Mirror

    def record_good_blobs(self, blobs: Mapping[str, str]) -> None:
        """Replace the last good blob of every path of the store; equal ones are not written again."""
        known = self._mirror.good_blobs(self.good_blobs)
        gone = [(path,) for path in sorted(known.keys() - blobs.keys())]
        changed = [(path, blob) for path, blob in blobs.items() if known.get(path) != blob]
        with self._file.transaction():
            self._file.execute_many("DELETE FROM good_blob WHERE path = ?", gone)
            self._file.put(GOOD_BLOB, changed)
        self._mirror.blobs_recorded(blobs)

    def record_in_force(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Record the active revision of the store, and replace the last good blobs."""
        with self._file.transaction():
            if revision != self.revision_in_force:
                self._file.put(META, [(_REVISION, revision)])
            self.record_good_blobs(good_blobs)

    @property
    def revision_in_force(self) -> str:
        """The revision that came into force last; empty before the first one."""
        rows = self._file.rows(META, "WHERE key = ?", (_REVISION,))
        return str(rows[0][1]) if rows else ""

    def good_blobs(self) -> dict[str, str]:
        """Path to the id of the last blob that was parsed without an error."""
        return dict(self._file.rows(GOOD_BLOB, "ORDER BY path"))
