"""Records of rollouts: their events, their entries in the mark of a cluster, and their changes in one computation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from reconciler.api.ledger import ENDS, Event, EventKind
from reconciler.api.refs import short_revision
from reconciler.api.rollout_progress import (
    Begin,
    Complete,
    EarlierRevision,
    GateStatus,
    Phase,
    Record,
    RecordChange,
    ReleaseFacts,
    RolloutProgress,
    StageKind,
    StageSlot,
    Steady,
)
from reconciler.decoding import prepared
from reconciler.documents import is_dns_subdomain
from reconciler.observations import instant, moment_of

Begun = tuple[EventKind, str]
"""An episode that lasts until an event ends it: its kind and its subject."""

_END_OF: Final = {begin: end for end, begin in ENDS.items()}


def rollout_events(
    before: RolloutProgress | None, after: RolloutProgress, time: str, *, number: int = 0, begun: Collection[Begun] = ()
) -> tuple[Event, ...]:
    """Return the events between two states of a rollout, in order; call it once for each recorded state.

    `before`: None at the start of the process; `begun` then has the open episodes of history. `number`: of the round.
    """
    rows = list(_of_clusters(before, after))
    was: Mapping[Begun, Mapping[str, Any]] = _lasting(before) if before is not None else {key: {} for key in begun}
    is_now = _lasting(after)
    over = sorted(was.keys() - is_now.keys())
    rows.extend((_END_OF[kind], subject, {"revision": after.release}) for kind, subject in over)
    for (kind, subject), data in sorted(is_now.items(), key=lambda one: one[0]):
        known = was.get((kind, subject))
        if known is None or (known and known != data):
            rows.append((kind, subject, data))
    is_news = bool(after.changes) if before is None else not before.is_done or before.release != after.release
    if after.is_done and is_news:
        why = "it is completed in every stage"
        rows.append((EventKind.ROLLOUT_DONE, f"rollout {after.rollout}", {"revision": after.release, "why": why}))
    return tuple(Event(round=number, time=time, kind=kind, subject=subject, data=data) for kind, subject, data in rows)


def _of_clusters(
    before: RolloutProgress | None, after: RolloutProgress
) -> Iterator[tuple[EventKind, str, Mapping[str, Any]]]:
    was = before.records if before is not None else {}
    for change in after.changes:
        if not isinstance(change, Begin | Complete):
            continue
        subject, cluster = f"rollout {after.rollout} @ {change.cluster}", after.clusters.get(change.cluster)
        stage = cluster.stage if cluster is not None else ""
        if isinstance(change, Begin):
            earlier = was.get(change.cluster, _NOTHING).revision
            data = {"revision": change.revision, "stage": stage, "before": earlier}
            turn = "it rolls back to what it had completed" if change.is_rollback else f"its turn in the stage {stage}"
            why = f"{turn}; {short_revision(earlier) or 'nothing'} before"
            yield EventKind.ROLLOUT_BEGUN, subject, {**data, "why": why}
        else:
            revision = after.records[change.cluster].revision
            data = {"revision": revision, "stage": stage, "why": f"it meets the gate of the stage {stage}"}
            yield EventKind.ROLLOUT_COMPLETED, subject, data


def _lasting(progress: RolloutProgress) -> dict[Begun, dict[str, Any]]:
    """Return the unfinished episodes that wait for a person or that a person began, by kind and subject."""
    episodes: dict[Begun, dict[str, Any]] = {}
    pinned = set()
    for stage in progress.stages:
        subject, state = f"rollout {progress.rollout}/{stage.name}", stage.state
        data: dict[str, Any] = {"revision": progress.release}
        match state.kind:
            case StageKind.PAUSED:
                data |= {"clusters": list(state.failed), "why": f"failed: {', '.join(state.failed)}"}
                episodes[EventKind.ROLLOUT_PAUSED, subject] = data
            case StageKind.WAITS_FOR_APPROVAL:
                why = f"the approval ended at {state.ended}; " if state.ended else ""
                data |= {"entry": state.entry, "why": f"{why}add under spec.approvals: {state.entry}"}
                episodes[EventKind.APPROVAL_AWAITED, subject] = data
            case StageKind.PINNED:
                pinned.add(stage.name)
                data |= {"pinned": state.pinned, "why": f"the stage is pinned to {state.pinned}"}
                episodes[EventKind.PINNED, subject] = data
    for name, cluster in progress.clusters.items():
        if cluster.phase is Phase.PINNED and cluster.stage not in pinned:
            data = {"revision": progress.release, "pinned": cluster.revision, "why": cluster.why}
            episodes[EventKind.PINNED, f"rollout {progress.rollout} @ {name}"] = data
    return episodes


_NOTHING: Final = Record()


class _EarlierEntry(msgspec.Struct, rename="camel"):
    revision: str = ""
    left_at: str = ""


@prepared
class _RecordEntry(msgspec.Struct, rename="camel", omit_defaults=True):
    revision: str = ""
    begun_at: str = ""
    completed_at: str = ""
    earlier: tuple[_EarlierEntry, ...] = ()


def recorded(records: Mapping[str, Record], changes: Iterable[RecordChange]) -> dict[str, Record]:
    """Return the records once changes are made to them."""
    after = dict(records)
    for change in changes:
        after[change.cluster] = _changed(after.get(change.cluster, _NOTHING), change)
    return after


def _changed(record: Record, change: RecordChange) -> Record:
    match change:
        case Begin(revision=revision, at=at):
            # Those to which the cluster may roll back from now on.
            earlier = [old for old in record.earlier if old.revision not in (record.revision, revision)]
            if record.completed_at and record.revision != revision:
                earlier.insert(0, EarlierRevision(revision=record.revision, left_at=at))
            return Record(revision=revision, begun_at=at, earlier=tuple(earlier[:_EARLIER_MAX]))
        case StageSlot(revision=revision, at=at):
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
    earlier = tuple(_EarlierEntry(old.revision, old.left_at) for old in record.earlier)
    return msgspec.json.encode(_RecordEntry(record.revision, record.begun_at, record.completed_at, earlier)).decode()


def record_of(entry: str) -> Record | None:
    """Return the record of an entry; None if malformed. Fields of later versions are ignored."""
    try:
        stored = msgspec.json.decode(entry, type=_RecordEntry)
        for text in (stored.begun_at, stored.completed_at, *(old.left_at for old in stored.earlier)):
            instant(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not stored.revision or not stored.begun_at:
        return None
    earlier = tuple(EarlierRevision(revision=old.revision, left_at=old.left_at) for old in stored.earlier)
    return Record(revision=stored.revision, begun_at=stored.begun_at, completed_at=stored.completed_at, earlier=earlier)


class RolloutRecords:
    """Records by cluster, their changes, and times to look again; with gate states (`sights`) and facts."""

    def __init__(
        self, records: Mapping[str, Record], now: str, sights: Mapping[str, GateStatus], facts: ReleaseFacts
    ) -> None:
        self.records = dict(records)
        self.sights = sights
        self.facts = facts
        self.changes: list[RecordChange] = []
        self._looks: dict[str, datetime] = {}
        """By what is looked at: a cluster, or a stage."""
        self.now = moment_of(now)
        self.text = now

    def __getitem__(self, cluster: str) -> Record:
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

    def check_at(self, text: str, subject: str) -> None:
        """Look again at a time (RFC 3339); empty: it is not known."""
        moment = instant(text)
        if moment is not None:
            self.is_past(moment, subject)

    @property
    def next_check_at(self) -> str:
        """Return when something can change by itself (RFC 3339, whole seconds, rounded up); empty: never."""
        if not self._looks:
            return ""
        moment = min(self._looks.values()).astimezone(UTC)
        if moment.microsecond:
            moment = moment.replace(microsecond=0) + timedelta(seconds=1)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def later_of(one: str, other: str) -> str:
    """Return the later of two times; the given one if the other is empty."""
    if instant(one) is None or instant(other) is None:
        return one or other
    return other if _is_later(other, one) else one


_PREFIX: Final = "rollout."
_KEY_CHARS_MAX: Final = 253
"""Of a key of a ConfigMap (Kubernetes, `IsConfigMapKey`)."""
ROLLOUT_NAME_CHARS_MAX: Final = _KEY_CHARS_MAX - len(_PREFIX)
_ENTRY_CHARS_MAX: Final = 1024
_REVISION_CHARS_MAX: Final = 128
_EARLIER_MAX: Final = 3
_ENTRIES_MAX: Final = 1000
"""Limit of one mark: they fill a quarter of a ConfigMap."""


def entries_of(records: Mapping[str, Record]) -> dict[str, str]:
    """Return key and text for the mark of one cluster, sorted, of its records by rollout; a turn alone makes none."""
    begun = {name: record for name, record in sorted(records.items()) if record.revision and record.begun_at}
    return {_PREFIX + name: entry_of(record) for name, record in begun.items() if _is_name(name)}


def records_of_entries(entries: Mapping[str, str], now: str) -> dict[str, Record]:
    """Return the records of a mark's entries, by rollout, sorted. Broken or too large ones are ignored.

    Who can write to a cluster can write its mark, so that a time in the future (`now`: RFC 3339) counts as now: no gate
    waits for ever, and no later record seems older.
    """
    result: dict[str, Record] = {}
    keyed = sorted((key, text) for key, text in entries.items() if key.startswith(_PREFIX))
    for key, text in islice(keyed, _ENTRIES_MAX):
        record = record_of(text) if len(text) <= _ENTRY_CHARS_MAX else None
        name = key.removeprefix(_PREFIX)
        if _is_name(name) and record is not None and _is_revision(record.revision):
            begun, completed = _not_later(record.begun_at, now), _not_later(record.completed_at, now)
            if begun:
                earlier = tuple(
                    replace(old, left_at=left)
                    for old in record.earlier[:_EARLIER_MAX]
                    if _is_revision(old.revision) and (left := _not_later(old.left_at, now))
                )
                result[name] = Record(revision=record.revision, begun_at=begun, completed_at=completed, earlier=earlier)
    return result


def believed(known: Record | None, marked: Record) -> Record | None:
    """Return the record to take from a mark; None: the known one stays.

    The revision that began later counts: a mark is written before the journal, so a journal that is behind its mark was
    lost, or restored from a backup. Of the same beginning the journal knows more, but perhaps not the completion.
    """
    if known is None or not known.revision:
        return marked if known is None else replace(marked, turn=known.turn, turn_at=known.turn_at)
    if _is_later(marked.begun_at, known.begun_at):
        return marked
    is_same = (known.revision, known.begun_at) == (marked.revision, marked.begun_at)
    if is_same and marked.completed_at and not known.completed_at:
        return replace(known, completed_at=marked.completed_at, steady_since="")
    return None


def is_past(known: Record | None, begun: Record) -> bool:
    """Return whether the beginning of the revision, or of a later one, is recorded."""
    return known is not None and known.revision != "" and not _is_later(begun.begun_at, known.begun_at)


def has_beginnings(entries: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
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
        earlier = min(moment.astimezone(UTC), limit.astimezone(UTC))
    except OverflowError:
        return ""
    return earlier.replace(microsecond=0).isoformat().replace("+00:00", "Z")
