"""The time when a Lease may be taken, and the time for which its holder may write.

Spans are measured by the observer's clock, from the moment at which a version of the Lease was first seen, or from
before the request that renewed it: no clock of another machine is trusted.

Source: ADR 20; client-go, tools/leaderelection, on clocks that differ in time and agree nearly in speed.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from reconciler.stages.leadership.lease import Lease

_WRITING_SHARE = 2 / 3
"""The share of its duration for which a holder may write after a renewal: writes end before the Lease does."""


class Sighting(Struct, frozen=True, kw_only=True):
    """A Lease as last read. `resource_version` is empty without one.

    `since_s`: the first reading of this version, by the observer's clock.
    """

    lease: Lease = Lease()
    resource_version: str = ""
    since_s: float


class Leader(Struct, frozen=True, kw_only=True):
    """Whoever holds the Lease. `term`: how often it changed hands; each leader has a higher one than those before.

    `renewed_s`: before the request was sent that renewed it last. `writes_from_s`: who made the Lease waits until a
    holder of one that was deleted has ended writing, too.
    """

    term: int
    renewed_s: float
    duration_s: float
    writes_from_s: float

    def writing_left_s(self, now_s: float) -> float:
        """So long a request that begins now may take; 0: nothing may be written."""
        if now_s < self.writes_from_s:
            return 0.0
        return max(self.renewed_s + self.duration_s * _WRITING_SHARE - now_s, 0.0)

    def is_run_out(self, now_s: float) -> bool:
        """Return whether another process may act by now."""
        return now_s >= self.renewed_s + self.duration_s


def sighted(before: Sighting | None, lease: Lease, resource_version: str, now_s: float) -> Sighting:
    """Return a Lease as read now; an unchanged one keeps its first time."""
    if before is not None and before.resource_version == resource_version:
        return before
    if before is not None and not resource_version:
        # Somebody deleted it: its holder makes it again, and goes on.
        return Sighting(lease=before.lease, resource_version="", since_s=now_s)
    return Sighting(lease=lease, resource_version=resource_version, since_s=now_s)


def wait_for_lease_s(seen: Sighting, holder: str, duration_s: float, now_s: float) -> float:
    """Return the seconds until `holder` may take the Lease, if nobody renews it; 0: now.

    A Lease without holder that was not given back was emptied by a person: its holder may not know yet. `duration_s`:
    from the store. A longer duration promised to the holder counts.
    """
    lease = seen.lease
    if lease.is_given_back or (lease.holder == holder and holder) or not (lease.holder or seen.resource_version):
        return 0.0
    return max(seen.since_s + max(seen.lease.duration_s, duration_s) - now_s, 0.0)


def taken_by(holder: str, before: Lease, duration_s: int, now: str) -> Lease:
    """The Lease as a new holder writes it. `now`: RFC 3339."""
    term = before.transitions + 1
    return Lease(holder=holder, duration_s=duration_s, transitions=term, acquired=now, renewed=now)


def renewed(before: Lease, duration_s: int, now: str) -> Lease:
    """The Lease as its holder renews it."""
    return replace(before, duration_s=duration_s, renewed=now)


def raised(before: Lease, over: int, now: str) -> Lease:
    """Return the Lease with a term above one that was seen: a deleted Lease begins to count again."""
    return replace(before, transitions=max(before.transitions, over + 1), renewed=now)
