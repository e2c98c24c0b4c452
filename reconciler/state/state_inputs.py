"""The inputs of the fleet's state: results of rounds, and observations between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from reconciler.api.clusters import Member, NotRead, Read, Unlisted
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.plan import Change, Manifest
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.scheduler import Schedule
from reconciler.state.state_values import Failed, Fought, HealthState

Copy = tuple[str, Identity]
"""Cluster and identity."""
Changes = Mapping[Copy, tuple[Change, ...]]

_ASKED_FIRST = "it was not asked yet"


class StateFacts(Struct, frozen=True, kw_only=True):
    """The facts after a round over some of the fleet, of all of it.

    `changes`: pending ones. `failures`: of changes that were tried. `health`: of unhealthy copies, by cluster.
    `fights`: copies in conflict back-off. `closed`: the reason of each write block, by the scope of a person's order.
    `last_contact`: the last reading of each cluster (RFC 3339).
    """

    decision: Schedule
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    members: Mapping[str, Member]
    changes: Changes = field(default_factory=dict)
    problems: Mapping[Identity, tuple[Problem, ...]] = field(default_factory=dict)
    failures: Mapping[Copy, Failed] = field(default_factory=dict)
    health: Mapping[str, Mapping[Identity, HealthState]] = field(default_factory=dict)
    fights: Mapping[Copy, Fought] = field(default_factory=dict)
    journal: JournalSnapshot = field(default_factory=JournalSnapshot)
    closed: Mapping[str, str] = field(default_factory=dict)
    last_contact: Mapping[str, str] = field(default_factory=dict)
    frozen: Mapping[Copy, str] = field(default_factory=dict)
    """The reasons why undesired copies stay: a broken file may want them."""
    unlisted: Mapping[str, tuple[Unlisted, ...]] = field(default_factory=dict)
    """By cluster the kinds that cannot be read there."""
    elsewhere: frozenset[str] = frozenset()
    """Clusters of the store that belong to another process: nothing is reported about them."""

    def why_away(self, cluster: str) -> str | None:
        """Return why a cluster of the store is unknown; None: it was read."""
        member = self.members.get(cluster)
        if isinstance(member, Read):
            return None
        return member.why if isinstance(member, NotRead) else _ASKED_FIRST

    def why_frozen(self, cluster: str, identity: Identity) -> str | None:
        """Which broken file keeps a copy as it is; None: none does. What is known of it was seen before."""
        reach = self.decision.claims.frozen.get(identity)
        return reach.why if reach is not None else self.frozen.get((cluster, identity))

    def is_left(self, cluster: str) -> bool:
        """Return whether the store has no document of the cluster."""
        return cluster not in self.decision.fleet.clusters

    def is_bound(self, cluster: str, identity: Identity) -> bool:
        """Return whether the store places a copy there."""
        binding = self.decision.bindings.get(identity)
        return binding is not None and any(target.cluster == cluster for target in binding.targets)


def by_copy(changes: Iterable[Change]) -> Changes:
    """The changes of each copy."""
    found: dict[Copy, tuple[Change, ...]] = {}
    for change in changes:
        copy = (change.cluster, change.identity)
        found[copy] = (*found[copy], change) if copy in found else (change,)
    return found
