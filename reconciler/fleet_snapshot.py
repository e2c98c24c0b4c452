"""The snapshot that a round is computed from, and that every stage after the schedule takes whole."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.api.clusters import LastHealth, LiveObject, Member, Observations, Read
from reconciler.api.content import DecryptedValues
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.problem import Problem
from reconciler.api.refs import GVK, Identity
from reconciler.documents import Schema
from reconciler.kinds.registry import Registry


class FleetSnapshot(Struct, frozen=True, kw_only=True):
    """The desired fleet, its clusters, the journal, and the orders of persons, at one moment.

    `now`: RFC 3339 UTC. `interpreters`: knowledge of kinds.
    """

    fleet: Fleet
    interpreters: Registry
    now: str
    members: Mapping[str, Member] = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    """Of each cluster its nodes, pods and workloads; beside them previous placements, constraints and orders."""
    journal: JournalSnapshot = field(default_factory=JournalSnapshot)
    only: frozenset[Identity] | None = None
    """Plan these identities alone: what a commit or an event concerns. None: everything."""
    schemas: Mapping[GVK, Schema] = field(default_factory=dict)
    """Of kinds that neither Kubernetes nor the store defines, as the members describe them."""
    opened: Mapping[Identity, DecryptedValues | Problem] = field(default_factory=dict)
    """The values of encrypted templates, or why there are none."""
    elsewhere: frozenset[str] = frozenset()
    """Clusters of the fleet that another process applies to: they are no members, and nobody looks at them."""
    undecided: Mapping[Identity, Problem] = field(default_factory=dict)
    """The reasons why objects stay as they are: this process lacks inputs to schedule them."""

    def placed_elsewhere(self, identity: Identity) -> dict[str, int | None]:
        """Return by cluster of another process the replicas that were assigned there last; no more is known of it."""
        before = self.observations.previous.get(identity) if self.elsewhere else None
        return {cluster: count for cluster, count in before.targets if cluster in self.elsewhere} if before else {}

    def live(self, cluster: str, identity: Identity) -> LiveObject | None:
        """Return an object as it was read in a cluster; None: it is not there, or was not read."""
        member = self.members.get(cluster)
        return member.objects.get(identity) if isinstance(member, Read) else None

    def is_asked(self, cluster: str, identity: Identity) -> bool:
        """Return whether the round reads a copy."""
        member = self.members.get(cluster)
        is_unasked = isinstance(member, Read) and identity in member.unasked
        return not is_unasked and (self.only is None or identity in self.only)

    def last_health(self, cluster: str, identity: Identity) -> LastHealth | None:
        """Return the health of an object that was read without its status; None: its body says it."""
        member = self.members.get(cluster)
        return member.last_healths.get(identity) if isinstance(member, Read) else None

    def shows(self, cluster: str, identity: Identity) -> bool:
        """Return whether a round shows what is due of a copy. In a cluster that left the fleet, nothing is."""
        if not self.fleet.is_complete or (self.only is not None and identity not in self.only):
            return False
        member = self.members.get(cluster)
        return member.shows(identity) if isinstance(member, Read) else cluster not in self.fleet.clusters
