"""The same change in many clusters as one entry, with the exceptions named.

Thirty clusters with one image bump are one entry; a field that differs in some of them is a line that names those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from reconciler.model.plan import MISSING, Action, Cause, Change, FieldChange
from reconciler.model.problem import Source
from reconciler.model.refs import GVK, Identity
from reconciler.report.text.style import DESTRUCTIVE
from reconciler.report.text.values import compact_json
from reconciler.stages.ownership import OWNER_ANNOTATION

_OWNER_PATH = f"metadata.annotations['{OWNER_ANNOTATION}']"


class FieldLine(Struct, frozen=True, kw_only=True):
    """One field that changes alike in `clusters`. `times`: when `manager` wrote it, first and last."""

    path: str
    before: Any
    after: Any
    cause: Cause
    manager: str
    times: tuple[str, str]
    clusters: tuple[str, ...]


class Entry(Struct, frozen=True, kw_only=True):
    """One action on one resource in `clusters`, all for the same reason."""

    action: Action
    gvk: GVK
    identity: Identity
    cause: Cause
    source: Source
    held: str | None
    reason: str
    clusters: tuple[str, ...]
    fields: tuple[FieldLine, ...]

    @property
    def is_destructive(self) -> bool:
        """Return whether it deletes, replaces or releases something."""
        return self.action in DESTRUCTIVE


def grouped(changes: Iterable[Change]) -> tuple[Entry, ...]:
    """Entries: destructive ones first, then by namespace, kind and name."""
    groups: dict[tuple[Any, ...], list[Change]] = {}
    for change in changes:
        reason = str(change.reason) if change.reason is not None else ""
        key = (change.action, change.gvk, change.identity, change.cause, change.source, change.held, reason)
        groups.setdefault(key, []).append(change)
    entries = (_entry(key, members) for key, members in groups.items())
    return tuple(sorted(entries, key=_order))


def _entry(key: tuple[Any, ...], members: list[Change]) -> Entry:
    action, gvk, identity, cause, source, held, reason = key
    return Entry(
        action=action,
        gvk=gvk,
        identity=identity,
        cause=cause,
        source=source,
        held=held,
        reason=reason,
        clusters=tuple(sorted({member.cluster for member in members})),
        fields=_field_lines(members),
    )


def _field_lines(members: list[Change]) -> tuple[FieldLine, ...]:
    lines: dict[tuple[Any, ...], list[tuple[str, FieldChange]]] = {}
    for member in sorted(members, key=lambda change: change.cluster):
        for field in of_interest(member.fields):
            manager = field.owner.manager if field.owner is not None else ""
            key = (field.path, _value_key(field.before), _value_key(field.after), field.cause, manager)
            lines.setdefault(key, []).append((member.cluster, field))
    found = (_field_line(manager, alike) for (*_, manager), alike in lines.items())
    return tuple(sorted(found, key=lambda line: (line.path, line.clusters)))


def of_interest(fields: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """Without our own mark where anything else changes: it follows from that (assigned replicas, policy)."""
    others = tuple(field for field in fields if field.path != _OWNER_PATH)
    return others or fields


def _field_line(manager: str, alike: list[tuple[str, FieldChange]]) -> FieldLine:
    field = alike[0][1]
    times = sorted(found.owner.time for _, found in alike if found.owner is not None and found.owner.time)
    return FieldLine(
        path=field.path,
        before=field.before,
        after=field.after,
        cause=field.cause,
        manager=manager,
        times=(times[0], times[-1]) if times else ("", ""),
        clusters=tuple(cluster for cluster, _ in alike),
    )


def _value_key(value: Any) -> str | None:
    return None if value is MISSING else compact_json(value)


def _order(entry: Entry) -> tuple[Any, ...]:
    rank = DESTRUCTIVE.index(entry.action) if entry.is_destructive else len(DESTRUCTIVE)
    identity = entry.identity
    subject = (identity.namespace, identity.kind, identity.name, identity.group)
    return (rank, *subject, entry.action, entry.clusters, entry.cause, entry.source, entry.held or "", entry.reason)
