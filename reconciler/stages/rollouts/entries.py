"""Entries of rollouts in the mark of a cluster: writing them, and reading them with care."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from msgspec.structs import replace

from reconciler.model.rollouts.record import Record
from reconciler.stages.documents import is_dns_subdomain
from reconciler.stages.observations import instant
from reconciler.stages.rollouts.book import entry_of, record_of

_PREFIX: Final = "rollout."
_KEY_CHARS_MAX: Final = 253
"""Of a key of a ConfigMap (Kubernetes, `IsConfigMapKey`)."""
ROLLOUT_NAME_CHARS_MAX: Final = _KEY_CHARS_MAX - len(_PREFIX)
_ENTRY_CHARS_MAX: Final = 1024
_REVISION_CHARS_MAX: Final = 128
_ENTRIES_MAX: Final = 1000
"""Limit of one mark: they fill a quarter of a ConfigMap."""


def entries_of(records: Mapping[str, Record]) -> dict[str, str]:
    """Key to text for the mark of one cluster, sorted. `records`: those of the cluster, by rollout.

    A record of a turn alone is the journal's, and makes none.
    """
    told = {name: record for name, record in sorted(records.items()) if record.revision and record.begun_at}
    return {_PREFIX + name: entry_of(record) for name, record in told.items() if _is_name(name)}


def told_by(entries: Mapping[str, str], now: str) -> dict[str, Record]:
    """Return the records of a mark's entries, by rollout, sorted. Broken or too large ones are ignored.

    Who can write to a cluster can write its mark, so that a time in the future (`now`: RFC 3339) counts as now: no gate
    waits for ever, and no later record seems older.
    """
    told: dict[str, Record] = {}
    for key, text in islice(sorted(entries.items()), _ENTRIES_MAX):
        record = record_of(text) if len(text) <= _ENTRY_CHARS_MAX else None
        name = key.removeprefix(_PREFIX)
        if key.startswith(_PREFIX) and _is_name(name) and record is not None and _is_revision(record.revision):
            begun, completed = _not_later(record.begun_at, now), _not_later(record.completed_at, now)
            if begun:
                told[name] = Record(revision=record.revision, begun_at=begun, completed_at=completed)
    return told


def believed(known: Record | None, told: Record) -> Record | None:
    """Return the record to take from a mark; None: the known one stays.

    The revision that began later counts: a mark is written before the journal, so a journal that is behind its mark was
    lost, or restored from a backup. Of the same beginning the journal knows more, but perhaps not the completion.
    """
    if known is None or not known.revision:
        return told if known is None else replace(told, turn=known.turn, turn_at=known.turn_at)
    if _is_later(told.begun_at, known.begun_at):
        return told
    is_same = (known.revision, known.begun_at) == (told.revision, told.begun_at)
    if is_same and told.completed_at and not known.completed_at:
        return replace(known, completed_at=told.completed_at, steady_since="")
    return None


def is_past(known: Record | None, begun: Record) -> bool:
    """Return whether the beginning of the revision, or of a later one, is recorded."""
    return known is not None and known.revision != "" and not _is_later(begun.begun_at, known.begun_at)


def is_told(entries: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether a mark has the beginning of each wanted entry. A completion alone is worth no write."""
    return all(_beginning(entries.get(key, "")) == _beginning(text) for key, text in wanted.items())


def _beginning(text: str) -> tuple[str, str] | None:
    record = record_of(text) if len(text) <= _ENTRY_CHARS_MAX else None
    return (record.revision, record.begun_at) if record is not None else None


def _is_name(name: str) -> bool:
    return len(name) <= ROLLOUT_NAME_CHARS_MAX and is_dns_subdomain(name)


def _is_revision(text: str) -> bool:
    return len(text) <= _REVISION_CHARS_MAX and text.isascii() and text.isprintable() and " " not in text


def _is_later(one: str, other: str) -> bool:
    first, second = instant(one), instant(other)
    return first is not None and (second is None or first > second)


def _not_later(text: str, now: str) -> str:
    """Return the time in our form (RFC 3339 UTC), at most now; empty if missing or invalid."""
    moment, limit = instant(text), instant(now)
    if moment is None or limit is None:
        return ""
    try:
        found = min(moment.astimezone(UTC), limit.astimezone(UTC))
    except OverflowError:
        return ""
    return _written(found)


def _written(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
