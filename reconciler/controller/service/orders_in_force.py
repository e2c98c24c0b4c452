"""Active orders of persons, and log lines of their beginnings and ends: person, reason, end."""

from __future__ import annotations

import logging
from typing import NamedTuple, TypeVar

from reconciler.api.ledger import EvictionRecord, SuspensionRecord
from reconciler.clock import Clock
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import in_force

log = logging.getLogger("reconciler")

_Order = TypeVar("_Order")


class OrdersInForce(NamedTuple):
    """The orders at one moment. `version`: of the journal, which shows changes between two moments."""

    version: int
    suspensions: tuple[SuspensionRecord, ...]
    evictions: tuple[EvictionRecord, ...]


def orders_in(journal: Journal, clock: Clock) -> OrdersInForce:
    """Return the active orders. Only orders are written into the journal by other processes than the service."""
    now = clock.now()
    return OrdersInForce(journal.data_version, in_force(journal.suspensions(), now), in_force(journal.evictions(), now))


def tell_orders(before: OrdersInForce, now: OrdersInForce) -> None:
    """Log the orders that came and those that are over."""
    for found in _new(now.suspensions, before.suspensions):
        log.warning("a person suspends writing", extra=_of_suspension("Suspended", found))
    for found in _new(before.suspensions, now.suspensions):
        log.info("a suspension is over", extra=_of_suspension("Resumed", found))
    for order in _new(now.evictions, before.evictions):
        log.warning("a person evicts an object", extra=_of_eviction("Evicted", order))
    for order in _new(before.evictions, now.evictions):
        log.info("an eviction is over", extra=_of_eviction("Readmitted", order))


def _of_suspension(event: str, found: SuspensionRecord) -> dict[str, str]:
    return {"event": event, "obj": found.scope, "by": found.who, "why": _why(found.reason, found.until)}


def _of_eviction(event: str, found: EvictionRecord) -> dict[str, str]:
    about = {"cluster": found.cluster, "obj": str(found.identity)}
    return {"event": event, **about, "by": found.who, "why": _why(found.reason, found.until)}


def _why(reason: str, until: str) -> str:
    return " ".join(filter(None, (reason, f"(until {until})" if until else "")))


def _new(found: tuple[_Order, ...], known: tuple[_Order, ...]) -> tuple[_Order, ...]:
    return tuple(order for order in found if order not in known)
