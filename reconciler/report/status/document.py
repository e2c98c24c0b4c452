"""`status` as one document: the picture of the last round and the orders in the journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from reconciler.model.binding import Constraint, Tick
from reconciler.model.ledger import Event, EvictionRecord, SuspensionRecord
from reconciler.model.tree import Json


class Status(Struct, frozen=True, kw_only=True):
    """Content of the journal. `writer`: the process that holds it, empty: none. `commit`: author and subject.

    `led_by`: the leader of the fleet while this process stands by; empty: none.
    """

    fleet: str
    journal: str
    writer: str = ""
    led_by: str = ""
    picture: Mapping[str, Json]
    commit: tuple[str, str] | None = None
    suspensions: tuple[SuspensionRecord, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    released: tuple[Event, ...] = ()


def status_document(status: Status) -> dict[str, Json]:
    """The document; its first keys are those of the picture, see `report.state_document`."""
    author, subject = status.commit or (None, None)
    return {
        **status.picture,
        "fleet": status.fleet,
        "journal": status.journal,
        "writer": status.writer or None,
        "ledBy": status.led_by or None,
        "commit": {"author": author, "subject": subject} if status.commit else None,
        "suspensions": suspensions_part(status.suspensions),
        "constraints": constraints_part(status.constraints),
        "released": released_part(status.released),
    }


def suspensions_part(suspensions: Iterable[SuspensionRecord]) -> list[Json]:
    """`[{scope, reason, who, until}]`; until is null when only `resume` ends it."""
    return [
        {"scope": found.scope, "reason": found.reason, "who": found.who, "until": found.until or None}
        for found in suspensions
    ]


def constraints_part(constraints: Iterable[Constraint]) -> list[Json]:
    """`[{resource, cluster, replicasMax, excludes, since, until, reason, tick}]`, those of ticks first."""
    return [
        {
            "resource": str(found.identity),
            "cluster": found.cluster,
            "replicasMax": found.replicas_max,
            "excludes": found.excludes,
            "since": found.since or None,
            "until": found.until or None,
            "reason": found.reason,
            "tick": str(found.tick) or None,
        }
        for found in constraints
    ]


def constraint_words(entry: Mapping[str, Any]) -> str:
    """Return one entry of `constraints_part` in words: count, start, end, reason."""
    count = entry["replicasMax"]
    allowed = "excluded" if entry["excludes"] else f"at most {count} replica{'' if count == 1 else 's'}"
    since = f" since {entry['since']}" if entry.get("since") else ""
    until = f" until {entry['until']}" if entry["until"] else ""
    if entry.get("tick") == Tick.DESCHEDULING:
        until = " until its nodes, the pod template or the placement change"
    return f"{allowed}{since}{until}, {entry['reason']}"


def evictions_part(evictions: Iterable[EvictionRecord]) -> list[Json]:
    """`[{resource, cluster, since, until, who, reason}]`; until is null when only `--undo` ends it."""
    return [
        {
            "resource": str(found.identity),
            "cluster": found.cluster,
            "since": found.since,
            "until": found.until or None,
            "who": found.who,
            "reason": found.reason,
        }
        for found in evictions
    ]


def released_part(released: Iterable[Event]) -> list[Json]:
    """`[{subject, time, revision, cause}]`, newest first."""
    return [
        {
            "subject": event.subject,
            "time": event.time,
            "revision": event.data.get("revision"),
            "cause": event.data.get("why") or event.data.get("cause"),
        }
        for event in released
    ]
