"""Journals that belong to a fleet, with next to nothing in them."""

from __future__ import annotations

from pathlib import Path

from reconciler.journal.sqlite_journal import Journal


def made(path: Path, fleet: str, source: str = "") -> Path:
    """A journal of a fleet; `source`: the store of its last round."""
    with Journal.open(path) as journal:
        journal.record_fleet(fleet)
        if source:
            journal.record_state({"source": source})
    return path
