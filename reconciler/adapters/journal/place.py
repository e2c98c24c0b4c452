"""The path of a fleet's journal when no file is named: `…/fleet-reconciler/FLEET/journal.db`.

A person has one user account and several fleets, so each fleet has a journal of its own. Versions before kept one for
all of them, `…/fleet-reconciler/journal.db`; it goes on to serve the fleet that it belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from reconciler.adapters.journal.journal import Journal
from reconciler.errors import JournalError

_FILE: Final = "journal.db"


def journal_of(fleet: str, former: Collection[str], environ: Mapping[str, str]) -> Path:
    """The journal of a fleet, there or not. `former`: names that the fleet had before.

    Raises:
        JournalError: no state folder is known, or a journal of an earlier version cannot be read.
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

    Raises:
        JournalError: no state folder is known.
    """
    folder = _state_folder(environ)
    found: dict[str, Path] = {}
    for path in (folder / _FILE, *sorted(folder.glob(f"*/{_FILE}"))):
        if path.exists():
            found[_name_of(path)] = path
    return found


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
