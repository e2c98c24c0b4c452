"""Whose the objects of the members are, and where copies of ours live; each object is asked once a round."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.model.ledger import AppliedRow
from reconciler.model.member import Member, Read
from reconciler.model.refs import Identity
from reconciler.stages.compare import Stance
from reconciler.stages.moves import Replicas
from reconciler.stages.ownership import Ownership, Standing, ownership_of


class Standings:
    """The standing of what was seen. `only`: of these identities alone."""

    def __init__(
        self,
        members: Mapping[str, Member],
        ledger: Mapping[str, Mapping[Identity, AppliedRow]],
        stance: Stance,
        only: Collection[Identity] | None = None,
    ) -> None:
        """Look at the members; of those that were not read, what the journal remembers counts."""
        self._seen: dict[str, dict[Identity, Ownership]] = {}
        self._copies: dict[Identity, dict[str, Replicas]] = {}
        for name, member in members.items():
            if isinstance(member, Read):
                self._look(member, stance, member.objects if only is None else member.objects.keys() & only)
                continue
            rows = ledger.get(name, {})
            for identity in rows if only is None else rows.keys() & only:
                self._copies.setdefault(identity, {})[name] = rows[identity].replicas

    def _look(self, member: Read, stance: Stance, identities: Collection[Identity]) -> None:
        seen = self._seen[member.name] = {}
        for identity in identities:
            found = ownership_of(member.objects[identity], stance.fleet, stance.previous_names)
            seen[identity] = found
            if found.standing is Standing.OURS and found.owner is not None:
                self._copies.setdefault(identity, {})[member.name] = found.owner.replicas

    def of(self, identity: Identity, cluster: str) -> Ownership | None:
        """Whose the object in a cluster is; None when none was seen there."""
        return self._seen[cluster].get(identity)

    def copies(self, identity: Identity) -> Mapping[str, Replicas]:
        """The clusters where copies of ours live now, with the replicas assigned to them."""
        return self._copies.get(identity, {})

    def count_ours(self, cluster: str) -> int:
        """How many of the objects seen in a cluster are ours."""
        return sum(found.standing is Standing.OURS for found in self._seen[cluster].values())
