"""Journals that belong to a fleet, with next to nothing in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.journal import Journal


def exported(journal: Journal) -> dict[str, Any]:
    """The whole journal as one document."""
    document: dict[str, Any] = {}
    with journal.transaction():
        for name, pieces in journal.export().items():
            for piece in pieces:
                known = document.get(name)
                document[name] = piece if known is None else {**known, **piece} if name == "manifest" else known + piece
    return document


def made(path: Path, fleet: str, source: str = "") -> Path:
    """A journal of a fleet; `source`: the store of its last round."""
    with Journal.open(path) as journal:
        journal.record_fleet(fleet)
        if source:
            journal.record_state({"source": source})
    return path
