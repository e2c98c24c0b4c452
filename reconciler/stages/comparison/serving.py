"""What the copies of one object serve, as their own clusters say: the facts on which the rule of moves rests.

Source: `stages.moves`. Of a cluster, or an object, that could not be read only what the journal recorded is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.reading import count as count_of
from reconciler.interpreters.reading import is_observed, mapping
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import Health, LiveObject, Member, Read, Told
from reconciler.model.plan import Manifest
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject
from reconciler.stages.comparison.compare import Comparison
from reconciler.stages.moves import Replicas, Serving, still_established
from reconciler.stages.ownership import is_terminating

Elsewhere = Callable[[str], Serving | None]
"""What a copy serves in a cluster that another process applies to; None: it is none of these."""

AsHeld = Callable[[str], Comparison | None]
"""The comparison of a copy with what was wanted of it until now: with the replicas that it holds."""


class Copies(Struct, frozen=True, kw_only=True):
    """The copies of one identity, and what is wanted of them: `target`, in force so far `old`.

    `compared`: each with its manifest, of the target. `as_held` compares one that is to shrink with what it holds.
    """

    identity: Identity
    interpreter: Interpreter
    members: Mapping[str, Member]
    ledger: Mapping[str, Mapping[Identity, AppliedRow]]
    target: Mapping[str, Replicas]
    old: Mapping[str, Replicas]
    compared: Mapping[str, Comparison]
    manifests: Mapping[str, Manifest]
    as_held: AsHeld
    elsewhere: Elsewhere

    def serving(self, cluster: str) -> Serving:
        """What the copy in a cluster serves."""
        row, live = self._row(cluster), self._live(cluster)
        found = self.elsewhere(cluster) if cluster not in self.members else None
        if found is not None:
            return found
        if live is None:
            is_known = self._is_known(cluster)
            return Serving(is_known=is_known, established=row.established if row and not is_known else None)
        if is_terminating(live):
            return Serving()
        return Serving(
            is_available=self._is_available(cluster, live),
            is_written=self._is_written(cluster),
            replicas=self._available(cluster, live),
            established=still_established(row, live.uid, self.old.get(cluster)),
        )

    def established(self) -> dict[str, int]:
        """Copies that are established anew now that nothing is on its way: cluster to replicas.

        Nobody's health is asked that is established with what is wanted already.
        """
        found: dict[str, int] = {}
        for cluster, comparison in self.compared.items():
            live, wanted, row = comparison.live, self.target[cluster] or 0, self._row(cluster)
            if live is None or (row is not None and row.established == wanted and row.uid == live.uid):
                continue
            if not is_terminating(live) and self._is_available(cluster, live):
                found[cluster] = wanted
        return found

    def _row(self, cluster: str) -> AppliedRow | None:
        rows = self.ledger.get(cluster)
        return rows.get(self.identity) if rows else None

    def _is_known(self, cluster: str) -> bool:
        member = self.members.get(cluster)
        if not isinstance(member, Read):
            return False
        return not any(self.identity in unknown for unknown in (member.unread, member.under_way, member.unasked))

    def _live(self, cluster: str) -> LiveObject | None:
        member = self.members.get(cluster)
        return member.objects.get(self.identity) if isinstance(member, Read) else None

    def _is_written(self, cluster: str) -> bool:
        comparison = self.compared.get(cluster)
        return comparison is not None and comparison.in_sync

    def _is_available(self, cluster: str, live: LiveObject) -> bool:
        """Whether all of what is wanted there serves, with more replicas or without."""
        if self._is_written(cluster):
            return self._is_healthy(cluster, live) and not self._is_mute(live)
        after, before = self.target.get(cluster), self.old.get(cluster)
        if after is None or before is None or after >= before:
            return False
        held = self.as_held(cluster)
        if held is None or not held.in_sync:
            return False
        # An override may make another number of the assigned one.
        count = self._available(cluster, live)
        wanted = self.interpreter.demand(self.manifests[cluster].body).replicas
        if self._is_healthy(cluster, live):
            return True
        if count is None or wanted is None:
            return False
        return (is_observed(live.body) or self._told(cluster) is not None) and count - _outdated(live.body) >= wanted

    def _told(self, cluster: str) -> Told | None:
        member = self.members.get(cluster)
        return member.told.get(self.identity) if isinstance(member, Read) and member.told else None

    def _is_healthy(self, cluster: str, live: LiveObject) -> bool:
        told = self._told(cluster)
        health = self.interpreter.health(live.body) if told is None else told.health
        return health is Health.HEALTHY

    def _available(self, cluster: str, live: LiveObject) -> int | None:
        told = self._told(cluster)
        return self.interpreter.available(live.body) if told is None else told.available

    def _is_mute(self, live: LiveObject) -> bool:
        """Whether a kind that nobody described has no status yet, while a copy that is to go reports one."""
        if self.interpreter.kinds or live.body.get("status"):
            return False
        left = (self._live(cluster) for cluster in self.old if cluster not in self.target)
        return any(found is not None and found.body.get("status") for found in left)


def _outdated(live: JsonObject) -> int:
    """How many pods are of an earlier template: of those that are available, so many may be old."""
    status = mapping(live.get("status"))
    return max(0, count_of(status.get("replicas"), 0) - count_of(status.get("updatedReplicas"), 0))
