"""Which commit of a clone is in force, and how a new one stands to it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import pygit2

from reconciler.adapters.git.repository import opened
from reconciler.errors import StoreError

_FAULTS: Final = (pygit2.GitError, KeyError, ValueError, OSError)


class Relation(StrEnum):
    """A new tip, seen from the commit in force."""

    FORWARD = "forward"
    REWOUND = "rewound"
    """It was in force before, or is older: the branch was set back, or a mirror lags behind."""
    REWRITTEN = "rewritten"
    """Both have grown from a common commit."""
    UNRELATED = "unrelated"


def in_force(folder: Path, name: str) -> str | None:
    """The commit that a reference of the clone pins; None when there is none, or it cannot be read."""
    try:
        with opened(folder) as repository:
            found: Any = repository.references.get(name)
            return str(found.peel(pygit2.Commit).id) if found is not None else None
    except _FAULTS:
        return None


def pin(folder: Path, name: str, commit: str) -> None:
    """Make the reference hold the commit, so that no garbage collection takes what is in force.

    What was in force before stays reachable too: the last good content of a broken file may only be there.
    """
    try:
        before = in_force(folder, name)
        oid = pygit2.Oid(hex=commit)
        with opened(folder) as repository:
            if before is not None and before != commit and not repository.descendant_of(oid, pygit2.Oid(hex=before)):
                repository.references.create(f"refs/fleet/kept/{before}", pygit2.Oid(hex=before), force=True)
            repository.references.create(name, oid, force=True)
    except _FAULTS as error:
        raise StoreError(f"{folder}: the clone cannot be written: {error}") from error


def relation(folder: Path, old: str, new: str) -> Relation:
    """How the commit `new` stands to `old`; both are in the clone, or `old` is lost (then they are unrelated)."""
    before, after = pygit2.Oid(hex=old), pygit2.Oid(hex=new)
    try:
        with opened(folder) as repository:
            if before == after or repository.descendant_of(after, before):
                return Relation.FORWARD
            base: Any = repository.merge_base(before, after)
    except _FAULTS:
        return Relation.UNRELATED
    if base is None:
        return Relation.UNRELATED
    return Relation.REWOUND if base == after else Relation.REWRITTEN
