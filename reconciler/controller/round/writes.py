"""Writes and failed writes as events of history: change, reason, person, and the values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.api.content import Json
from reconciler.api.ledger import MADE, DriftOutcome, Event, EventKind
from reconciler.api.plan import MISSING, Action, Cause, Change, FieldChange
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.journal.events import EventFilter
from reconciler.journal.sqlite_journal import Journal
from reconciler.report.difference import compact_json, value_texts
from reconciler.report.mask import Masker, masker_of
from reconciler.report.plan.groups import of_interest
from reconciler.report.status.remedies import remedy
from reconciler.state import THE_SERVER, Failed

_MOVED: Final = frozenset({Cause.PLACEMENT, Cause.DEPENDENCY})
"""Causes of changes that follow a placement, whoever moved it."""
_VALUES_MAX: Final = 20
"""Limit of fields with their values in an event; of the others only the paths."""
_NEWEST: Final = 10
"""So many events of an object are looked through for its last write."""
_VALUE_CHARACTERS: Final = 200
"""Longer values are cut around their difference; the store and the cluster hold the whole."""

Behind = Mapping[str, str]
"""The person or cause (`who`) and the reason in words (`why`); empty: the commit, or nobody in particular."""


def write_events(journal: Journal | None, revision: str, time: str, results: Sequence[ChangeResult]) -> Iterator[Event]:
    """Yield the events of writes, with their results. `journal`: tells of earlier events; None: it is not asked."""
    masker = masker_of(result.change for result in results)
    number = journal.complete_rounds() if journal is not None else 0
    for result in results:
        change = result.change
        is_drift = change.cause is Cause.DRIFT
        kind = EventKind.FAILED if result.error else EventKind.DRIFT if is_drift else EventKind(change.action.done)
        altered = [field.path for field in result.altered]
        behind: Behind = {}
        failed = Failed(result.error, is_altered=bool(result.altered), todo=result.todo)
        todo = remedy(*change.copy, failed, str(change.source), revision) if result.error else ""
        if is_drift:
            behind = _behind_drift(change, altered or (last_altered(journal, change) if journal is not None else ()))
        elif change.cause in _MOVED and journal is not None:
            placed = journal.events(subject=str(change.identity), kind=EventKind.PLACED, limit=1)
            behind = behind_event(placed[0]) if placed else {}
        yield Event(
            round=number,
            time=time,
            kind=kind,
            subject=f"{change.identity} @ {change.cluster}",
            data={
                "revision": revision,
                **_event_data(change, masker),
                **({"why": change.reason.text} if change.reason else {}),
                **behind,
                # Messages of an API server may quote the sent object.
                **({"error": masker.text(result.error), "todo": todo} if result.error else {}),
                **({"altered": altered} if altered else {}),
                **({"outcome": str(DriftOutcome.HEALED)} if is_drift and not result.error else {}),
            },
        )


def behind_event(event: Event) -> Behind:
    """Return the person or cause of an event."""
    data = event.data
    by_kind = {EventKind.FREED: data.get("tick"), EventKind.READMITTED: "a person"}
    who = data.get("who") or by_kind.get(EventKind(event.kind))
    return {"who": str(who), "why": str(data.get("why", ""))} if who else {}


def last_altered(journal: Journal, change: Change) -> Collection[str]:
    """Return the fields that a cluster altered at the last write; empty if every differing field has a manager."""
    if all(field.owner is not None for field in change.fields):
        return ()
    wanted = EventFilter(
        subject=f"{change.identity} @ {change.cluster}", kinds=(EventKind.FAILED, EventKind.DRIFT, *MADE)
    )
    for event in (recorded.event for recorded in journal.newest_events(wanted, _NEWEST)):
        if event.kind != EventKind.DRIFT or event.data.get("outcome") == DriftOutcome.HEALED:
            altered: Collection[str] = event.data.get("altered", ())
            return altered
    return ()


def drift_event(
    number: int,
    revision: str,
    time: str,
    change: Change,
    outcome: DriftOutcome,
    why: str,
    altered: Collection[str] = (),
) -> Event:
    """A drift that is not set back now. `altered`: as `last_altered`."""
    masker = masker_of([change])
    return Event(
        round=number,
        time=time,
        kind=EventKind.DRIFT,
        subject=f"{change.identity} @ {change.cluster}",
        data={
            "revision": revision,
            **_event_data(change, masker),
            **_behind_drift(change, altered),
            "outcome": str(outcome),
            "why": masker.text(why),
        },
    )


def managers_of(change: Change) -> tuple[str, ...]:
    """Return the other field managers of the changed fields, sorted."""
    return tuple(sorted({field.owner.manager for field in change.fields if field.owner is not None}))


def _behind_drift(change: Change, altered: Collection[str]) -> Behind:
    # A field that was taken away, or a whole object, has nobody's name on it any more.
    is_server = any(field.owner is None and field.path in altered for field in change.fields)
    who = [*managers_of(change), *([THE_SERVER] if is_server else [])]
    return {"who": ", ".join(who) or "somebody"}


def _event_data(change: Change, masker: Masker) -> dict[str, Any]:
    masked = masker.change(change) if change.fields else change
    fields = of_interest(masked.fields)
    data: dict[str, Any] = {
        "action": str(change.action),
        "cause": str(change.cause),
        "source": str(change.source),
        "fields": [field.path for field in fields],
    }
    if change.action in (Action.UPDATE, Action.REPLACE) and fields:
        data["values"] = [_value(field) for field in fields[:_VALUES_MAX]]
    return data


def _value(field: FieldChange) -> dict[str, Json]:
    values = [None if value is MISSING else value for value in (field.before, field.after)]
    if any(len(value if isinstance(value, str) else compact_json(value)) > _VALUE_CHARACTERS for value in values):
        values = [
            None if value is None else text
            for value, text in zip(values, value_texts(field.before, field.after, _VALUE_CHARACTERS), strict=True)
        ]
    value: dict[str, Json] = {"path": field.path, "before": values[0], "after": values[1]}
    if field.owner is not None:
        value["owner"] = {
            "manager": field.owner.manager,
            "operation": field.owner.operation or None,
            "time": field.owner.time or None,
        }
    return value
