"""Repair of a broken journal: keep the file aside, begin anew, save readable rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from reconciler.adapters.journal.file import JournalFile, Row, Table
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.journal.lock import JournalLock
from reconciler.adapters.journal.rows import CLUSTER, HOLD, META, ROLLOUT, SUSPENSION, TABLES
from reconciler.errors import JournalCorrupt, JournalError

_SALVAGED = {
    META: "its uuid and fleet",
    CLUSTER: "the uids of the clusters",
    SUSPENSION: "suspensions",
    HOLD: "what it wrote into the clusters' marks",
}
_TOLD_BY_MARKS = (ROLLOUT,)
"""Saved for unreachable clusters; without these rows the marks restore them later."""


class Rebuilt(NamedTuple):
    """An open, empty journal; the new path of the broken file (None: it was sound); rows that could not be saved."""

    journal: Journal
    set_aside: Path | None
    lost: tuple[str, ...]


def rebuild(path: Path, *, keeps_sound: bool = False) -> Rebuilt:
    """Return a journal without objects, to be filled from the members' marks.

    A sound file is reset in place; `keeps_sound`: it stays as it is. A broken one is renamed `journal.db.corrupt-<n>`;
    identity, cluster uids, suspensions and records of rollouts are carried over when their rows are intact. No round is
    complete then, so nothing is deleted.

    Raises:
        JournalLocked, JournalTooNew, JournalError: as `Journal.open`.
    """
    lock = JournalLock(path)
    try:
        if _is_sound(path):
            journal = Journal.open(path, lock=lock)
            if not keeps_sound:
                journal.reset()
            return Rebuilt(journal, None, ())
        saved = _salvage(path)
        set_aside = move_aside(path)
        journal = Journal.open(path, lock=lock)
        journal.take_over(saved)
    except JournalError:
        lock.close()
        raise
    return Rebuilt(journal, set_aside, tuple(what for table, what in _SALVAGED.items() if table not in saved))


def _is_sound(path: Path) -> bool:
    try:
        with Journal(JournalFile(path, read_only=False, tables=TABLES), None) as journal:
            return not journal.verify()
    except JournalCorrupt:
        return False


def _salvage(path: Path) -> dict[Table, list[Row]]:
    saved: dict[Table, list[Row]] = {}
    try:
        file = JournalFile(path, read_only=True, tables=TABLES)
    except JournalError:
        return saved
    for table in (*_SALVAGED, *_TOLD_BY_MARKS):
        try:
            rows = file.rows(table)
        except JournalError:
            continue
        if table is not META or {"uuid", "hash_key"} <= {row[0] for row in rows}:
            saved[table] = rows
    file.close()
    return saved


def move_aside(path: Path) -> Path:
    """Rename the file and its log to `journal.db.corrupt-<n>`, with the first free n; return the new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    # The log first: a crash in between leaves a broken file without it, never a new file under an old log.
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return aside
