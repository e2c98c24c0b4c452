"""The ownership index: owners of the members' objects, and the clusters of our copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from reconciler.api.clusters import Read
from reconciler.api.refs import Identity
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.observations import Replicas
from reconciler.ownership import ObjectOwner, Ownership, ownership_of


class SeenCopies(NamedTuple):
    """One identity over the fleet.

    `owners`: by the clusters where an object was read. `copies`: the clusters of our copies, with their assigned
    replicas.
    """

    owners: Mapping[str, Ownership]
    copies: Mapping[str, Replicas]


class OwnershipIndex:
    """Owners of the objects that were seen, and the clusters of our copies.

    An object is looked at when its identity is asked for, shortly before it is compared: bodies that were just looked
    at are read again far more quickly than those of another pass over the fleet.
    """

    def __init__(
        self,
        snapshot: FleetSnapshot,
    ) -> None:
        """Index the objects; for members that were not read, the journal's rows count."""
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

    def of(self, identity: Identity) -> SeenCopies:
        """Return the owners of the objects, and our copies."""
        owners: dict[str, Ownership] = {}
        copies: dict[str, Replicas] = {}
        settings, ledger = self._snapshot.fleet.settings, self._snapshot.journal.ledger
        for name in self._clusters.get(identity, ()):
            member = self._snapshot.members[name]
            if not isinstance(member, Read) or identity not in member.objects:
                copies[name] = ledger[name][identity].replicas
                continue
            found = owners[name] = ownership_of(member.objects[identity], settings.name, settings.previous_names)
            if found.standing is ObjectOwner.OURS and found.owner is not None:
                copies[name] = found.owner.replicas
        return SeenCopies(owners, copies)
