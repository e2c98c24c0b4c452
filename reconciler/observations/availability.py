"""The availability of a copy, as its own cluster reports it: enough, too little, or unknown.

Unknown is never good: it takes nothing over, and it is never taken for a copy that has nothing to lose. Source:
design#moves; docs/concepts/moves.md.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from reconciler.api.clusters import Health, LastHealth
from reconciler.api.content import JsonObject
from reconciler.kinds.body_fields import is_stale, mapping
from reconciler.kinds.interpreter import Interpreter


class UnknownReason(StrEnum):
    """The reason of unknown availability, in words that follow `it is unknown what m2 serves: `."""

    CLUSTER = "its cluster does not answer"
    ELSEWHERE = "another process applies there"
    OBJECT = "the object could not be read"
    STATUS = "no controller has reported its status"
    NEWEST = "its controller has not seen the newest spec"
    DELETED = "the object is being deleted"


class Available(Struct, frozen=True):
    """All desired replicas are available. `replicas`: their number; None: its kind does not count them."""

    replicas: int | None = None


class NotAvailable(Struct, frozen=True):
    """Not all desired replicas are available. `replicas`: their number; None: its kind does not count them."""

    replicas: int | None = 0


class UnknownAvailability(Struct, frozen=True):
    """Nothing is known about its availability."""

    why: UnknownReason


Availability = Available | NotAvailable | UnknownAvailability


class CopyAvailability(Struct, frozen=True, kw_only=True):
    """The availability of the copy in one cluster, as that cluster reports it.

    `is_written`: as desired. `established`: replicas when last fully available and at rest; None: never. `base`: target
    replicas when last at rest in a known state; 0: never.
    """

    availability: Availability
    is_written: bool = False
    established: int | None = None
    base: int = 0

    @property
    def is_available(self) -> bool:
        """Return whether all desired replicas are available."""
        return isinstance(self.availability, Available)

    def has_served(self, replicas: int) -> bool:
        """Return whether it is established with so many replicas."""
        return self.established is not None and self.established >= replicas

    def may_serve_more_than(self, replicas: int) -> bool:
        """Return whether it may serve more than so many replicas, or did when all was well; unknown may be more."""
        if isinstance(self.availability, UnknownAvailability) or self.availability.replicas is None:
            return True
        return max(self.availability.replicas, self.established or 0) > replicas


def availability_of(live: JsonObject, interpreter: Interpreter) -> Availability:
    """Return the availability of a live object against its own spec, from its status."""
    is_healthy = interpreter.health(live) is Health.HEALTHY
    if not interpreter.counts_replicas:
        return Available() if is_healthy else NotAvailable(None)
    replicas = interpreter.available(live)
    if replicas is None:
        return UnknownAvailability(UnknownReason.STATUS)
    if is_stale(mapping(live.get("status")), live):
        return UnknownAvailability(UnknownReason.NEWEST)
    return Available(replicas) if is_healthy else NotAvailable(replicas)


def last_availability(last: LastHealth) -> Availability:
    """Return the same of an object without a status of its own."""
    if last.health is Health.UNKNOWN:
        return UnknownAvailability(UnknownReason.STATUS)
    return Available(last.available) if last.health is Health.HEALTHY else NotAvailable(last.available)
