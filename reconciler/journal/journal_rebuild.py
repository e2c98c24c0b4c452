"""The path of a fleet's journal, `…/fleet-reconciler/FLEET/journal.db`, and the repair of a broken one.

A person has one user account and several fleets, so each fleet has a journal of its own. Versions before kept one for
all of them, `…/fleet-reconciler/journal.db`; it goes on to serve the fleet that it belongs to. Repair keeps the file
aside, begins again, and saves readable rows.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from reconciler.errors import JournalCorrupt, JournalError
from reconciler.journal.journal_lock import JournalLock
from reconciler.journal.rows import CLUSTER, HOLD, ROLLOUT, ROLLOUT_EARLIER, SUSPENSION, TABLES
from reconciler.journal.sqlite_file import META, JournalFile, Row, SqlTable
from reconciler.journal.sqlite_journal import Journal

_FILE: Final = "journal.db"


def journal_of(fleet: str, former: Collection[str], environ: Mapping[str, str]) -> Path:
    """The journal of a fleet, there or not. `former`: names that the fleet had before.

    Raises JournalError: no state folder is known, or a journal of an earlier version cannot be read.
    """
    if service := service_journal(environ):
        return service
    folder, names = _state_folder(environ), (fleet, *former)
    own = [folder / name / _FILE for name in names]
    there = next((path for path in own if path.exists()), None)
    if there is not None:
        return there
    shared = folder / _FILE
    return shared if shared.exists() and _fleet_of(shared) in names else own[0]


def service_journal(environ: Mapping[str, str]) -> Path | None:
    """The journal in the folder that systemd made for a service, which serves one fleet; None: it made none."""
    state = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(state) / _FILE if state else None


def known_journals(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the existing journals of this user, by their fleets.

    One that cannot be read, or that no fleet has used yet, has the name of its folder.
    Raises JournalError: no state folder is known.
    """
    folder = _state_folder(environ)
    return {_name_of(path): path for path in (folder / _FILE, *sorted(folder.glob(f"*/{_FILE}"))) if path.exists()}


def _name_of(journal: Path) -> str:
    try:
        return _fleet_of(journal) or journal.parent.name
    except JournalError:
        return journal.parent.name


def source_of(journal: Path) -> str:
    """The store of the last round, as it was named; empty: no round was recorded, or the journal cannot be read."""
    try:
        with Journal.open(journal, read_only=True) as opened:
            return str((opened.state() or {}).get("source", ""))
    except JournalError:
        return ""


def _fleet_of(journal: Path) -> str:
    with Journal.open(journal, read_only=True) as opened:
        return opened.fleet


def _state_folder(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_STATE_HOME") or (f"{environ['HOME']}/.local/state" if environ.get("HOME") else "")
    if not home:
        raise JournalError("no state folder is known; name the journal with --journal")
    return Path(home) / "fleet-reconciler"


_SALVAGED = {
    META: "its uuid and fleet",
    CLUSTER: "the uids of the clusters",
    SUSPENSION: "suspensions",
    HOLD: "what it wrote into the clusters' marks",
}
_TOLD_BY_MARKS = (ROLLOUT, ROLLOUT_EARLIER)
"""Saved for unreachable clusters; without these rows the marks restore them later."""


def rebuild(path: Path, *, keep_intact: bool = False) -> tuple[Journal, Path | None, tuple[str, ...]]:
    """Return a journal without objects, the new path of the broken file (None: it was sound), and what was lost.

    A sound file is reset in place; `keep_intact`: it stays as it is. A broken one is renamed `journal.db.corrupt-<n>`;
    identity, cluster uids, suspensions and records of rollouts are carried over when their rows are intact. No round is
    complete then, so nothing is deleted.
    Raises JournalLocked, JournalTooNew, JournalError: as `Journal.open`.
    """
    lock = JournalLock(path)
    try:
        if _is_sound(path):
            journal = Journal.open(path, lock=lock)
            if not keep_intact:
                journal.reset()
            return journal, None, ()
        saved = _salvage(path)
        set_aside = move_aside(path)
        journal = Journal.open(path, lock=lock)
        journal.take_over(saved)
    except JournalError:
        lock.close()
        raise
    return journal, set_aside, tuple(what for table, what in _SALVAGED.items() if table not in saved)


def _is_sound(path: Path) -> bool:
    try:
        with Journal(JournalFile(path, read_only=False, tables=TABLES), None) as journal:
            return not journal.verify()
    except JournalCorrupt:
        return False


def _salvage(path: Path) -> dict[SqlTable, list[Row]]:
    saved: dict[SqlTable, list[Row]] = {}
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
