"""The owner record in the ConfigMap of a cluster: the owner of the fleet there, and records of rollouts and hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig, digest_of
from reconciler.api.ledger import AppliedRow, HoldRecord
from reconciler.api.plan import Cause, Change
from reconciler.api.refs import GVK, Identity
from reconciler.containment import try_call
from reconciler.controller.round.apply_plan import WriteContext, applied_row
from reconciler.lease import read_term
from reconciler.observations import JobProgress, has_succeeded, run_of
from reconciler.ownership import RELEASE, OwnershipRecord
from reconciler.templates import HOOK, HOOK_DELETE, RUNS_ONCE

NAMESPACE: Final = "fleet-system"
_HOOK_PREFIX = "hook."
_KEY_DIGITS = 32
_HOOKS_MAX = 1000
"""Limit of one record: they fill less than a half of a ConfigMap."""
_ENTRY_CHARS_MAX = 1024
_HOOK_DELETE = ("metadata", "annotations", HOOK_DELETE)
_HOOK_RELEASE = ("metadata", "annotations", RELEASE)
_SHARD = "shard"
_OWN_KEYS = frozenset({"fleet", "journal", "epoch", "instance", "host", "since", "term", _SHARD, "released"})
"""The last two are of an earlier version (ADR 24)."""


class OwnerRecord(Struct, frozen=True, kw_only=True):
    """The owner record. An earlier version wrote neither `epoch` nor `token`. `entries`: other fields, as text."""

    journal: str
    epoch: int = 0
    token: str = ""
    host: str = ""
    since: str = ""
    term: int | None = None
    """Of the Lease under which it was written; None: without one."""
    entries: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        epoch = f", epoch {self.epoch}" if self.epoch else ""
        epoch += f", term {self.term}" if self.term is not None else ""
        since = f" since {self.since}" if self.since else ""
        return f"journal {self.journal}{epoch}{since}" + (f" on host {self.host}" if self.host else "")


def read_mark(live: LiveObject) -> OwnerRecord:
    """The mark that an object carries. What is no epoch counts as none."""
    data = dig(live.body, "data")
    texts = {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
    return OwnerRecord(
        journal=texts.get("journal", ""),
        epoch=_number(texts.get("epoch", "")) or 0,
        # A term of a Lease of a shard says nothing beside one of the fleet's: a person has to take over from it.
        term=read_term(_number(texts.get("term", "")) or 0) or None if _SHARD not in texts else None,
        token=texts.get("instance", ""),
        host=texts.get("host", ""),
        since=texts.get("since") or str(dig(live.body, "metadata", "creationTimestamp") or ""),
        entries={key: value for key, value in texts.items() if key not in _OWN_KEYS},
    )


class _HookEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a hook that ran and was deleted, or is about to be. Source: ADR 26."""

    apiVersion: str  # noqa: N815 - as in the object
    kind: str
    namespace: str = ""
    name: str
    uid: str
    release: str
    failed: bool = False


def is_hook_record(row: AppliedRow) -> bool:
    """Return whether a row is the record of a hook's run that outlives its object."""
    return row.finished and dig(row.recorded or {}, *_HOOK_DELETE) is not None


def hook_entries(rows: Iterable[AppliedRow]) -> dict[str, str]:
    """Key to text for the owner record of one cluster. `rows`: those of the cluster, by identity."""
    entries: dict[str, str] = {}
    for row in islice(filter(is_hook_record, rows), _HOOKS_MAX):
        entry = _HookEntry(
            apiVersion=row.gvk.api_version,
            kind=row.gvk.kind,
            namespace=row.identity.namespace,
            name=row.identity.name,
            uid=row.uid,
            release=str(dig(row.recorded or {}, *_HOOK_RELEASE)),
            failed=row.failed,
        )
        key = f"{_HOOK_PREFIX}{digest_of([*row.identity])[:_KEY_DIGITS]}"
        entries[key] = msgspec.json.encode(entry).decode()
    return entries


def record_hooks(changes: Iterable[Change], acting: WriteContext) -> None:
    """Record the runs of hooks that are about to be deleted: the ownership lock has them from here."""
    ran = [
        replace(row, finished=True, failed=not has_succeeded(change.before or {}))
        for change in changes
        if change.cause is Cause.COMPLETED and (row := applied_row(change, change.uid, acting)) is not None
    ]
    if ran:
        acting.journal.record_applied(ran)


def hooks_in(entries: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of hooks."""
    return {key: text for key, text in entries.items() if key.startswith(_HOOK_PREFIX)}


def hook_rows(cluster: str, entries: Mapping[str, str]) -> Iterator[AppliedRow]:
    """Yield the rows of an owner record's hooks. Broken or too large entries are ignored."""
    for _, text in islice(sorted(hooks_in(entries).items()), _HOOKS_MAX):
        entry = try_call(msgspec.json.decode, text[: _ENTRY_CHARS_MAX + 1], type=_HookEntry).value
        gvk = GVK.parse(entry.apiVersion, entry.kind) if entry is not None else None
        if entry is None or gvk is None or gvk.group_kind not in RUNS_ONCE or not entry.uid:
            continue
        yield AppliedRow(
            cluster=cluster,
            gvk=gvk,
            identity=Identity(*gvk.group_kind, entry.namespace, entry.name),
            uid=entry.uid,
            finished=True,
            failed=entry.failed,
            recorded={"metadata": {"annotations": {HOOK_DELETE: "", RELEASE: entry.release}}},
        )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def mark_body(fleet: str, mark: OwnerRecord, entries: Mapping[str, str]) -> JsonObject:
    """Return the ConfigMap of an owner record, with these entries."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": holder_name(fleet), "namespace": NAMESPACE},
        "data": {
            "fleet": fleet,
            "journal": mark.journal,
            "epoch": str(mark.epoch),
            "instance": mark.token,
            "host": mark.host,
            "since": mark.since,
            **({"term": str(mark.term)} if mark.term is not None else {}),
            **entries,
        },
    }


def is_own(mark: OwnerRecord, known: tuple[HoldRecord, ...]) -> bool:
    """Return whether a record with our journal's name is the last one of this journal, or older.

    An older one is of an earlier version, or of a cluster that was restored; a newer one, or another one of the same
    epoch, was written with a copy of the journal.
    """
    confirmed = max((hold.epoch for hold in known if hold.is_confirmed), default=0)
    is_known = any((hold.epoch, hold.token) == (mark.epoch, mark.token) for hold in known)
    return mark.epoch == 0 or is_known or mark.epoch < confirmed


def holder_name(fleet: str) -> str:
    """The ConfigMap's name."""
    return f"fleet-{fleet}"


def deposed(member: str, fleet: str, mark: OwnerRecord) -> str:
    """Return the message for a record of a later leader."""
    return f"{member}: fleet {fleet} is led by {mark} now; nothing is written by this process until it leads again"


def copy_refusal(fleet: str, mark: OwnerRecord) -> str:
    """Return the message for a member that a copy of our journal owns."""
    return (
        f"fleet {fleet} is held by a copy of this journal: {mark}; nothing is written here. Let that one go on and "
        "stop this one, or stop that one and take the fleet over with 'reconciler journal rebuild --takeover'"
    )


def marked_row(cluster: str, gvk: GVK, live: LiveObject, owner: OwnershipRecord) -> AppliedRow:
    """Return the row of an object's own marks, and whether its run has ended. `gvk`: as it is written."""
    is_over = live.identity[:2] in RUNS_ONCE
    if is_over:
        # A hook that failed is to run again once a person deletes it.
        is_hook = dig(live.body, "metadata", "annotations", HOOK) is not None
        is_over = has_succeeded(live.body) if is_hook else run_of(live.body) is JobProgress.FINISHED
    return replace(owner.row(cluster, gvk, live.identity, live.uid), finished=is_over)
