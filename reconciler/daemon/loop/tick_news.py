"""Reports of ticks' decisions: in the audit trail always, in the log once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from reconciler.model.binding import Constraint, Tick
from reconciler.model.ledger import Event
from reconciler.model.refs import Identity

log = logging.getLogger("reconciler")

_WORDS = {
    Tick.DESCHEDULING: (
        "Descheduled", "replicas find no node in a cluster and move to others as far as these have room"
    ),
    Tick.FAILOVER: ("FailedOver", "an application is broken in a cluster, and others take it over"),
}  # fmt: skip
_LEFT = {
    "FailoverAdvised": "an application is broken in a cluster; spec.failover.mode is advise, so nothing moves",
    "FailoverNowhere": "an application is broken in a cluster, and no other one can take it over, so it stays",
}


def events_of(before: Iterable[Constraint], after: Iterable[Constraint], now: str, number: int) -> Iterator[Event]:
    """An event for every constraint that came or changed (`constrained`) or went (`freed`)."""
    old, new = set(before), set(after)
    places = {_by_place(constraint) for constraint in new}
    gone = {constraint for constraint in old - new if _by_place(constraint) not in places}
    for kind, found in (("constrained", new - old), ("freed", gone)):
        for constraint in sorted(found, key=_by_place):
            data = {
                "tick": str(constraint.tick),
                "replicasMax": constraint.replicas_max,
                "excludes": constraint.excludes,
                "until": constraint.until or None,
                "why": constraint.reason,
            }
            subject = f"{constraint.identity} @ {constraint.cluster}"
            yield Event(round=number, time=now, kind=kind, subject=subject, data=data)


def tell(before: Iterable[Constraint], after: Iterable[Constraint]) -> None:
    """Log every constraint that came; one that only lasts longer is no news."""
    old = set(before)
    known = {(*_by_place(constraint), constraint.since) for constraint in old}
    for constraint in sorted(set(after) - old, key=_by_place):
        if constraint.tick in _WORDS and (*_by_place(constraint), constraint.since) not in known:
            event, words = _WORDS[constraint.tick]
            log.warning(words, extra={"event": event, **_about(constraint)})


def tell_left(event: str, found: Iterable[Constraint]) -> None:
    """Log that something was not done."""
    for constraint in found:
        log.warning(_LEFT[event], extra={"event": event, **_about(constraint)})


def _about(constraint: Constraint) -> dict[str, object]:
    return {
        "cluster": constraint.cluster,
        "obj": str(constraint.identity),
        "replicas_max": constraint.replicas_max,
        "cause": str(constraint.tick),
        "why": constraint.reason,
    }


def _by_place(constraint: Constraint) -> tuple[Identity, str, str]:
    return (constraint.identity, constraint.cluster, str(constraint.tick))
