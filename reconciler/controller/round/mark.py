"""The owner record in the ConfigMap of a cluster: the owner of the fleet there, and records of rollouts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.api.clusters import LiveObject
from reconciler.api.content import dig
from reconciler.api.ledger import HoldRecord
from reconciler.lease import read_term

_SHARD = "shard"
_OWN_KEYS = frozenset({"fleet", "journal", "epoch", "instance", "host", "since", "term", _SHARD, "released"})
"""The last two are of an earlier version (ADR 24)."""


class Mark(Struct, frozen=True, kw_only=True):
    """The owner record. `epoch` is 0 and `token` empty if an earlier version wrote it.

    `entries`: its other fields, as text; those of rollouts are in it.
    """

    journal: str
    epoch: int = 0
    token: str = ""
    host: str = ""
    since: str = ""
    term: int | None = None
    """Of the Lease under which it was written; None: without one."""
    entries: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the owner, the start and the host, for people."""
        epoch = f", epoch {self.epoch}" if self.epoch else ""
        epoch += f", term {self.term}" if self.term is not None else ""
        since = f" since {self.since}" if self.since else ""
        return f"journal {self.journal}{epoch}{since}" + (f" on host {self.host}" if self.host else "")


def read_mark(live: LiveObject) -> Mark:
    """The mark that an object carries. What is no epoch counts as none."""
    data = dig(live.body, "data")
    found = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
    return Mark(
        journal=found.get("journal", ""),
        epoch=_number(found.get("epoch", "")) or 0,
        # A term of a Lease of a shard says nothing beside one of the fleet's: a person has to take over from it.
        term=_term(found.get("term", "")) if _SHARD not in found else None,
        token=found.get("instance", ""),
        host=found.get("host", ""),
        since=found.get("since") or str(dig(live.body, "metadata", "creationTimestamp") or ""),
        entries={key: value for key, value in found.items() if key not in _OWN_KEYS},
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _term(text: str) -> int | None:
    """Return the term; None if the text is not a valid one."""
    return read_term(_number(text) or 0) or None


def is_own(mark: Mark, known: tuple[HoldRecord, ...]) -> bool:
    """Return whether a record with our journal's name is the last one of this journal, or older.

    An older one is of an earlier version, or of a cluster that was restored; a newer one, or another one of the same
    epoch, was written with a copy of the journal.
    """
    confirmed = max((found.epoch for found in known if found.is_confirmed), default=0)
    is_known = any((found.epoch, found.token) == (mark.epoch, mark.token) for found in known)
    return mark.epoch == 0 or is_known or mark.epoch < confirmed


def holder_name(fleet: str) -> str:
    """The ConfigMap's name."""
    return f"fleet-{fleet}"


def refusal(member: str, fleet: str, mark: Mark) -> str:
    """Return the message for a member that another journal owns."""
    return (
        f"{member}: fleet {fleet} is held by {mark}; use that journal, or take the fleet over with "
        "'reconciler journal rebuild --takeover'"
    )


def deposed(member: str, fleet: str, mark: Mark) -> str:
    """Return the message for a record of a later leader."""
    return f"{member}: fleet {fleet} is led by {mark} now; nothing is written by this process until it leads again"


def copy_refusal(fleet: str, mark: Mark) -> str:
    """Return the message for a member that a copy of our journal owns."""
    return (
        f"fleet {fleet} is held by a copy of this journal: {mark}; nothing is written here. Let that one go on and "
        "stop this one, or stop that one and take the fleet over with 'reconciler journal rebuild --takeover'"
    )
