"""Owners of the members' objects, the clusters of our copies, and the availability of copies: the inputs of moves.

For a cluster, or an object, that could not be read only the journal's rows are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.plan import Manifest
from reconciler.api.policies import Division
from reconciler.api.refs import Identity
from reconciler.diff.compare import Comparison
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds.body_fields import count as count_of
from reconciler.kinds.body_fields import mapping
from reconciler.kinds.interpreter import Interpreter
from reconciler.observations import (
    Availability,
    Available,
    CopyAtRest,
    CopyAvailability,
    NotAvailable,
    RecordedMove,
    Replicas,
    UnknownAvailability,
    UnknownReason,
    availability_of,
    last_availability,
    memory_of,
)
from reconciler.ownership import ObjectOwner, Ownership, fleet_names, is_terminating, ownership_of
from reconciler.scheduler import Schedule


class FleetCopies(NamedTuple):
    """One identity over the fleet: `owners` of objects that were read, `copies` of ours with assigned replicas."""

    owners: Mapping[str, Ownership]
    copies: Mapping[str, Replicas]


class OwnershipIndex:
    """Owners of seen objects and clusters of our copies, read when asked: shortly before the bodies are compared."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._snapshot = snapshot
        self._clusters: dict[Identity, list[str]] = {}
        for name, member in snapshot.members.items():
            rows = snapshot.journal.ledger.get(name, {})
            there: Collection[Identity] = member.objects if isinstance(member, Read) else rows
            if isinstance(member, Read) and (member.unread or member.under_way or member.unasked):
                # What was seen there once and is not read now, or is being written, may be there still.
                there = {*there, *((member.unread.keys() | member.under_way | member.unasked) & rows.keys())}
            for identity in there if snapshot.only is None else filter(there.__contains__, snapshot.only):
                self._clusters.setdefault(identity, []).append(name)

    @property
    def identities(self) -> Collection[Identity]:
        """Return every identity with an object, or a record of one, somewhere."""
        return self._clusters.keys()

    def of(self, identity: Identity) -> FleetCopies:
        """Return the owners of the objects, and our copies."""
        owners: dict[str, Ownership] = {}
        copies: dict[str, Replicas] = {}
        names, ledger = fleet_names(self._snapshot.fleet.settings), self._snapshot.journal.ledger
        for name in self._clusters.get(identity, ()):
            member = self._snapshot.members[name]
            if not isinstance(member, Read) or identity not in member.objects:
                copies[name] = ledger[name][identity].replicas
                continue
            ownership = owners[name] = ownership_of(member.objects[identity], names)
            if ownership.standing is ObjectOwner.OURS and ownership.owner is not None:
                copies[name] = ownership.owner.replicas
        return FleetCopies(owners, copies)


class Copies(Struct, frozen=True, kw_only=True):
    """The copies of one identity: desired (`target`), active (`old`), `compared`, and shrinking ones as `held`."""

    identity: Identity
    schedule: Schedule
    snapshot: FleetSnapshot
    target: Mapping[str, Replicas]
    old: Mapping[str, Replicas]
    compared: Mapping[str, Comparison]
    manifests: Mapping[str, Manifest]
    held: Mapping[str, Comparison] = field(default_factory=dict)

    @property
    def interpreter(self) -> Interpreter:
        """Return the interpreter of the kind."""
        return self.schedule.interpreters.of(*self.identity[:2])

    @property
    def was_at_rest(self) -> bool:
        """Return whether nothing was pending at its last placement: live copies are as desired then, or now."""
        if self.target == self.old:
            return True
        before = self.snapshot.observations.previous.get(self.identity)
        return self.snapshot.journal.has_history and before is not None and dict(before.targets) == dict(self.old)

    def availability(self, cluster: str) -> CopyAvailability:
        """Return the availability of the copy in a cluster."""
        if cluster in self.snapshot.elsewhere:
            placed = self.snapshot.placed_elsewhere(self.identity)
            assigned = placed.get(cluster, 0) or 0
            return CopyAvailability(
                availability=UnknownAvailability(UnknownReason.ELSEWHERE),
                established=assigned if cluster in placed else None,
                base=assigned,
            )
        live, row = self.snapshot.live(cluster, self.identity), self.snapshot.journal.row(cluster, self.identity)
        if live is None:
            member, identity = self.snapshot.members.get(cluster), self.identity
            why = UnknownReason.OBJECT
            if not isinstance(member, Read):
                why = UnknownReason.CLUSTER
            elif not any(identity in unread for unread in (member.unread, member.under_way, member.unasked)):
                return CopyAvailability(availability=NotAvailable(0))  # It surely does not exist.
            move = memory_of(row, row.uid, row.replicas) if row is not None else RecordedMove()
            availability: Availability = UnknownAvailability(why)
        elif is_terminating(live):
            return CopyAvailability(availability=UnknownAvailability(UnknownReason.DELETED))
        else:
            move = memory_of(row, live.uid, self.old.get(cluster))
            availability = self._availability(cluster, live)
        return CopyAvailability(
            availability=availability,
            is_written=live is not None and self._is_written(cluster),
            established=move.established,
            base=self._base(cluster, move, availability),
        )

    def at_rest(self) -> dict[str, CopyAtRest]:
        """Return new records of copies without pending writes; those with an equal record are not looked at."""
        records: dict[str, CopyAtRest] = {}
        for cluster, replicas in self.old.items() if self.was_at_rest else ():
            live, row = self.snapshot.live(cluster, self.identity), self.snapshot.journal.row(cluster, self.identity)
            known = memory_of(row, live.uid, replicas) if live is not None else RecordedMove()
            if live is None or known.established == (replicas or 0) or is_terminating(live):
                continue
            availability = self._availability(cluster, live)
            if isinstance(availability, Available) and self.target == self.old:
                records[cluster] = CopyAtRest(uid=live.uid, replicas=replicas or 0, is_available=True)
            elif not isinstance(availability, UnknownAvailability) and replicas is not None and known.base != replicas:
                records[cluster] = CopyAtRest(uid=live.uid, replicas=replicas, is_available=False)
        return records

    def _base(self, cluster: str, move: RecordedMove, availability: Availability) -> int:
        """Return the number from which a person scales the copy down; for unshared replicas its present one."""
        held, policy = self.old.get(cluster) or 0, self.schedule.policies.get(self.identity)
        is_shared = policy is None or policy.placement.scheduling.division is not Division.DUPLICATED
        is_known = self.was_at_rest and not isinstance(availability, UnknownAvailability)
        return held if not is_shared or is_known else max(move.base or 0, move.established or 0)

    def _is_written(self, cluster: str) -> bool:
        """Return whether it is there as desired. A doubt is resolved after the plan, and would else last for ever."""
        comparison = self.compared.get(cluster)
        return comparison is not None and comparison.shows_no_difference

    def _availability(self, cluster: str, live: LiveObject) -> Availability:
        """Return the availability of the desired replicas there."""
        last = self.snapshot.last_health(cluster, self.identity)
        availability = availability_of(live.body, self.interpreter) if last is None else last_availability(last)
        if isinstance(availability, UnknownAvailability):
            return availability
        if not self._is_written(cluster):
            is_enough = self._serves_remaining(cluster, live, availability)
            return Available(availability.replicas) if is_enough else NotAvailable(availability.replicas)
        if isinstance(availability, Available) and not self.interpreter.kinds and not live.body.get("status"):
            # An unknown kind has no status yet, while a copy to be deleted reports one.
            left = (self.snapshot.live(name, self.identity) for name in self.old if name not in self.target)
            if any(one is not None and one.body.get("status") for one in left):
                return UnknownAvailability(UnknownReason.STATUS)
        return availability

    def _serves_remaining(self, cluster: str, live: LiveObject, availability: Available | NotAvailable) -> bool:
        """Return whether a shrinking copy, equal to its desired state until now, serves all replicas that it keeps."""
        after, before = self.target.get(cluster), self.old.get(cluster)
        if after is None or before is None or after >= before:
            return False
        held = self.held.get(cluster)
        if held is None or not held.shows_no_difference:
            return False
        if isinstance(availability, Available):
            return True
        # An override may make another number of the assigned one.
        wanted = self.interpreter.demand(self.manifests[cluster].body).replicas
        # So many pods are of an earlier template, and so many of the available ones may be.
        status = mapping(live.body.get("status"))
        outdated = max(0, count_of(status.get("replicas"), 0) - count_of(status.get("updatedReplicas"), 0))
        return availability.replicas is not None and wanted is not None and availability.replicas - outdated >= wanted
