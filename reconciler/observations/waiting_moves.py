"""The one rule of moves: what serves is not taken away before the copies that take over are available.

Available is what a copy's own cluster says of it: it is there as it is wanted, its controller has seen that, and all of
its replicas are available. Three facts decide, and none depends on which round, commit or process it is:

- whether the copies that take over are available *now*; what is unknown is not available, and may be all there is;
- with how many replicas each copy is *established*: it was seen available with so many while nothing waited for it;
- its *base*, from which a person scales it down: what it was to have when nothing was on its way, served or not.

The last two are recorded beside what was applied there, and end with the object (its uid). A copy that exists and never
served is an arrival for ever where a cluster is left; where clusters only shrink, an arrival is what is to have more
than its base, so that a move under way stays one over commits and restarts. Source: design#moves;
design#effective-placement: in each cluster max(target, old) until those that take over are available, then the target;
design#runs-once: Jobs and bare Pods that have started are never moved create-first, finished ones never.

Copies at rest elsewhere are no concern of a change in some clusters. Source: ADR 15: events in one cluster are read
there. A move without progress for 10 minutes is reported, and the old copy stays. Source: design#move-stalled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Health, LastHealth
from reconciler.api.content import JsonObject, dig
from reconciler.api.ledger import AppliedRow
from reconciler.api.plan import Change, HeldBy, Hold
from reconciler.api.problem import Problem, warning
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import condition, is_stale, mapping
from reconciler.kinds.interpreter import Interpreter
from reconciler.observations.instants import age_s


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


Replicas = int | None

_ASSUMED = CopyAvailability(availability=Available())
_NOTHING = CopyAvailability(availability=NotAvailable(0))
_SILENT_CLUSTERS = (UnknownAvailability(UnknownReason.CLUSTER), UnknownAvailability(UnknownReason.ELSEWHERE))

NOBODY_TAKES_IT: Final = Hold(HeldBy.MOVE, "waits for a cluster that can take it")


class JobProgress(Enum):
    """The progress of a Job or a bare Pod."""

    PENDING = "pending"
    STARTED = "started"
    FINISHED = "finished"


def run_of(live: JsonObject) -> JobProgress:
    """Return the progress of the live Job or Pod, from its status."""
    status = mapping(live.get("status"))
    if live.get("kind") == "Pod":
        if status.get("phase") in ("Succeeded", "Failed"):
            return JobProgress.FINISHED
        return JobProgress.STARTED if dig(live, "spec", "nodeName") else JobProgress.PENDING
    if any(condition(live, kind).get("status") == "True" for kind in ("Complete", "Failed")):
        return JobProgress.FINISHED
    begun = any(status.get(key) for key in ("active", "succeeded", "failed"))
    return JobProgress.STARTED if begun else JobProgress.PENDING


def has_succeeded(live: JsonObject) -> bool:
    """Return whether the live Job or Pod has done what it was for."""
    return dig(live, "status", "phase") == "Succeeded" or condition(live, "Complete").get("status") == "True"


class ActivePlacement(Struct, frozen=True, kw_only=True):
    """The active placement. `holds`: why reductions wait. `waits`: why nothing may be created (a run elsewhere)."""

    targets: Mapping[str, Replicas]
    holds: Mapping[str, Hold] = field(default_factory=dict)
    waits: Mapping[str, Hold] = field(default_factory=dict)


def effective(
    target: Mapping[str, Replicas], old: Mapping[str, Replicas], serving: Mapping[str, CopyAvailability]
) -> ActivePlacement:
    """Return the active placement for `target`, given what lives where (`old`) and what copies serve.

    Where a cluster is left, every target has to be available; an established one in a silent cluster need not, beside
    another available one. Where clusters only shrink, those with more than their base have to be. A copy that serves no
    more than it keeps shrinks at once. None waits for itself.
    """
    losers = [cluster for cluster in sorted(old) if gains(old, target, cluster)]
    if not losers:
        return ActivePlacement(targets=target)
    if not target:
        return ActivePlacement(targets=old, holds=dict.fromkeys(losers, NOBODY_TAKES_IT))
    giving = [
        c for c in losers if c not in target or target[c] is None or serving[c].may_serve_more_than(target[c] or 0)
    ]
    pending = _pending(target, losers, serving) if giving else {}
    holds = {c: why for c in giving if (why := _waits_for({name: pending[name] for name in pending if name != c}))}
    return ActivePlacement(targets={**target, **{c: old[c] for c in holds}}, holds=holds)


def _pending(
    target: Mapping[str, Replicas], losers: list[str], serving: Mapping[str, CopyAvailability]
) -> Mapping[str, CopyAvailability]:
    """Return the targets that have to be available before anything is taken away, and are not."""
    copies = {cluster: serving[cluster] for cluster in sorted(target)}
    lacking = {cluster: copy for cluster, copy in copies.items() if not copy.is_available}
    left = [cluster for cluster in losers if cluster not in target]
    if not left:
        return {cluster: copy for cluster, copy in lacking.items() if (target[cluster] or 0) > copy.base}
    if len(lacking) < len(copies):
        # A cluster that is left need not wait for a copy that has served, and whose cluster is unreachable.
        lacking = {
            name: copy
            for name, copy in lacking.items()
            if copy.availability not in _SILENT_CLUSTERS
            or copy.established is None
            or copy.established < (target[name] or 0)
        }
    # A DaemonSet may be healthy on no node at all.
    is_empty = all(target[name] is None and copy.availability == Available(0) for name, copy in copies.items())
    if not lacking and is_empty and any(serving[cluster].may_serve_more_than(0) for cluster in left):
        return copies
    return lacking


def _waits_for(pending: Mapping[str, CopyAvailability]) -> Hold | None:
    """Return the copies to wait for, with those of unknown availability; None: none."""
    if not pending:
        return None
    unknown = [
        f"it is unknown what {cluster} serves: {copy.availability.why}"
        for cluster, copy in pending.items()
        if isinstance(copy.availability, UnknownAvailability)
    ]
    return Hold(HeldBy.MOVE, "; ".join([f"waits for {', '.join(pending)} healthy", *unknown]))


class RecordedMove(Struct, frozen=True, kw_only=True):
    """The journal's facts of an object beside the applied row. Both as in `AppliedRow`."""

    established: int | None = None
    base: int | None = None


def memory_of(row: AppliedRow | None, uid: str, replicas: Replicas) -> RecordedMove:
    """Return the record of an object once so many replicas are assigned to it: it serves no more than these."""
    if row is None or row.uid != uid:
        return RecordedMove()
    return RecordedMove(established=_at_most(row.established, replicas), base=_at_most(row.base, replicas))


class CopyAtRest(Struct, frozen=True, kw_only=True):
    """A copy without pending writes: its target number, and whether all of them are available."""

    uid: str
    replicas: int
    is_available: bool


def with_copy_at_rest(row: AppliedRow, rest: CopyAtRest) -> AppliedRow:
    """Return the row of a copy that was seen at rest; of another object than the recorded one nothing is learnt."""
    if row.uid != rest.uid:
        return row
    replicas = _at_most(rest.replicas, row.replicas)
    return replace(row, established=replicas, base=None) if rest.is_available else replace(row, base=replicas)


def _at_most(number: int | None, replicas: Replicas) -> int | None:
    return number if number is None or replicas is None else min(number, replicas)


def pinned(
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    runs: Mapping[str, JobProgress],
    ticked: Collection[str],
    closed: Mapping[str, str] | None = None,
) -> ActivePlacement:
    """Return the active placement of a Job or a bare Pod, which must not run twice: it goes before it comes.

    A finished run stays, and nothing is created elsewhere. A started one stays, unless `ticked`; an unstarted one goes.
    `closed`: why the new copy cannot be made in a cluster: for such a one nothing is taken away.
    """
    leaving = {cluster: runs[cluster] for cluster in old if cluster not in target and cluster in runs}
    if not leaving:
        return effective(target, old, {**dict.fromkeys(target, _NOTHING), **dict.fromkeys(old, _ASSUMED)})
    begun = {cluster for cluster, run in leaving.items() if run is not JobProgress.PENDING}
    finished = {cluster for cluster in begun if leaving[cluster] is JobProgress.FINISHED}
    word = "finished" if finished else "has started"
    hold = Hold(HeldBy.OTHERS, f"the run {word} and is not moved")
    if not finished and begun.issubset(ticked):
        arriving = [cluster for cluster in target if cluster not in old]
        refused = {cluster: closed[cluster] for cluster in sorted(arriving) if closed and cluster in closed}
        if target and not refused:
            where = ", ".join(sorted(leaving))
            wait = Hold(HeldBy.OTHERS, f"waits until the run in {where} is gone")
            return ActivePlacement(targets=target, waits=dict.fromkeys(arriving, wait))
        reasons = "; ".join(f"{cluster} cannot take the run over: {why}" for cluster, why in refused.items())
        hold = Hold(HeldBy.OTHERS, reasons) if reasons else NOBODY_TAKES_IT
    held = {cluster: old[cluster] for cluster in leaving}
    staying = {cluster: replicas for cluster, replicas in target.items() if cluster in old}
    return ActivePlacement(targets={**staying, **held}, holds=dict.fromkeys(sorted(held), hold))


def gains(target: Mapping[str, Replicas], old: Mapping[str, Replicas], cluster: str) -> bool:
    """Return whether a target is to have more than lives there."""
    if cluster not in old:
        return True
    after, before = target[cluster], old[cluster]
    return after is not None and before is not None and after > before


def others_at_rest(clusters: Collection[str], target: Mapping[str, Replicas], old: Mapping[str, Replicas]) -> bool:
    """Return whether every other copy is as desired, and none in `clusters` leaves or shrinks."""
    for cluster in {*target, *old}:
        is_there, is_wanted = cluster in old, cluster in target
        if cluster not in clusters and not (is_there and is_wanted and old[cluster] == target[cluster]):
            return False
        if is_there and not (is_wanted and (old[cluster] or 0) <= (target[cluster] or 0)):
            return False
    return True


PATIENCE_S = 600.0
"""So long a move may wait before it is reported."""

MOVE_STALLED = "move-stalled"

_TIMER = "move "


def is_waiting(change: Change) -> bool:
    """Return whether a change waits for copies that are to take over."""
    return change.hold is not None and change.hold.by is HeldBy.MOVE


def timer_of(identity: Identity, cluster: str) -> str:
    """Return the timer that says since when a copy waits to leave a cluster, or to shrink there."""
    return f"{_TIMER}{identity} @ {cluster}"


def is_timer(key: str) -> bool:
    """Return whether a timer is one of moves."""
    return key.startswith(_TIMER)


def waiting_times(
    changes: Iterable[Change], timers: Mapping[str, str], now: str, only: Collection[Identity] | None
) -> dict[str, str]:
    """Return all timers from now on: name to RFC 3339. `only`: the evaluated objects; None: all."""
    waiting = {timer_of(change.identity, change.cluster) for change in changes if is_waiting(change)}
    looked = None if only is None else {f"{_TIMER}{identity} @" for identity in only}
    running = {
        key: since
        for key, since in timers.items()
        if not is_timer(key) or key in waiting or (looked is not None and f"{key.rpartition(' @ ')[0]} @" not in looked)
    }
    return dict(sorted({**dict.fromkeys(waiting, now), **running}.items()))


def stalled(changes: Iterable[Change], timers: Mapping[str, str], now: str) -> Iterator[Problem]:
    """Yield a warning for every move that has waited for too long."""
    for change in changes:
        since = timers.get(timer_of(change.identity, change.cluster))
        if since is not None and is_waiting(change) and age_s(since, now) >= PATIENCE_S:
            message = f"{change.identity} stays as it is since {since}: it {change.held}"
            yield warning(change.source, "", MOVE_STALLED, message, change.cluster)
