"""The records during one computation: changes are noted and effective at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from reconciler.model.rollouts.record import Begin, Complete, Record, RecordChange, Steady, Turn
from reconciler.prepared import prepared
from reconciler.stages.observations import instant, moment_of

_NOTHING: Final = Record()


@prepared
class _Entry(msgspec.Struct, rename="camel"):
    revision: str = ""
    begun_at: str = ""
    completed_at: str = ""


def recorded(records: Mapping[str, Record], changes: Iterable[RecordChange]) -> dict[str, Record]:
    """The records once changes are made to them."""
    after = dict(records)
    for change in changes:
        after[change.cluster] = _changed(after.get(change.cluster, _NOTHING), change)
    return after


def _changed(record: Record, change: RecordChange) -> Record:
    match change:
        case Begin(revision=revision, at=at):
            return Record(revision=revision, begun_at=at)
        case Turn(revision=revision, at=at):
            return replace(record, turn=revision, turn_at=at)
        case Steady(since=since):
            return replace(record, steady_since=since)
        case Complete(at=at):
            return replace(record, completed_at=at, steady_since="")


def entry_of(record: Record) -> str:
    """Return the entry of a rollout in a cluster's ConfigMap, under the key `rollout.NAME`: JSON, without empty fields.

    >>> entry_of(Record(revision="5f3c9d2", begun_at="2026-11-21T10:00:00Z", steady_since="2026-11-21T10:01:00Z"))
    '{"revision":"5f3c9d2","begunAt":"2026-11-21T10:00:00Z"}'
    """
    kept = {"revision": record.revision, "begunAt": record.begun_at, "completedAt": record.completed_at}
    return msgspec.json.encode({key: value for key, value in kept.items() if value}).decode()


def record_of(entry: str) -> Record | None:
    """Return the record of an entry; None if malformed. Fields of later versions are ignored."""
    try:
        kept = msgspec.json.decode(entry, type=_Entry)
        for text in (kept.begun_at, kept.completed_at):
            instant(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not kept.revision or not kept.begun_at:
        return None
    return Record(revision=kept.revision, begun_at=kept.begun_at, completed_at=kept.completed_at)


class Book:
    """Records by cluster, the changes that were made to them, and when it is to be looked at them again."""

    __slots__ = ("_looks", "changes", "now", "records", "text")

    def __init__(self, records: Mapping[str, Record], now: str) -> None:
        """Begin with the recorded state."""
        moment = moment_of(now)
        self.records = dict(records)
        self.changes: list[RecordChange] = []
        self._looks: dict[str, datetime] = {}
        """By what is looked at: a cluster, or a stage."""
        self.now = moment
        self.text = now

    def __getitem__(self, cluster: str) -> Record:
        """The record of a cluster; an empty one where nothing is recorded."""
        return self.records.get(cluster, _NOTHING)

    def note(self, change: RecordChange) -> None:
        """Make a change."""
        self.changes.append(change)
        self.records[change.cluster] = _changed(self[change.cluster], change)
        if isinstance(change, Begin):
            self._looks.pop(change.cluster, None)  # What was waited for is no more.

    def is_over(self, since: str, seconds: int, subject: str) -> bool:
        """Return whether so many seconds have passed since a time; if not, note the time to check again."""
        begun = instant(since)
        assert begun is not None, "what is recorded has a time"
        return self.is_past(begun + timedelta(seconds=seconds), subject)

    def is_past(self, moment: datetime, subject: str) -> bool:
        """Return whether a moment has come; if not, note it as the time to check again."""
        if moment <= self.now:
            return True
        self._looks[subject] = min(moment, self._looks.get(subject, moment))
        return False

    def look_at(self, text: str, subject: str) -> None:
        """Look again at a time (RFC 3339); empty: it is not known."""
        moment = instant(text)
        if moment is not None:
            self.is_past(moment, subject)

    @property
    def look_again(self) -> str:
        """RFC 3339 of the next time at which something can change by itself, rounded up to a second; or empty."""
        if not self._looks:
            return ""
        found = min(self._looks.values()).astimezone(UTC)
        if found.microsecond:
            found = found.replace(microsecond=0) + timedelta(seconds=1)
        return found.strftime("%Y-%m-%dT%H:%M:%SZ")


def later_of(one: str, other: str) -> str:
    """Return the later of two times; the given one if the other is empty."""
    first, second = instant(one), instant(other)
    if first is None or second is None:
        return one or other
    return one if first >= second else other
