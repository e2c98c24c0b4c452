"""The journal as one consistent view of it was read: everything of it that a round is computed from."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.ledger import AppliedRow, Intent, Losses, SuspensionRecord
from reconciler.model.observation import Observations
from reconciler.model.refs import Identity
from reconciler.model.rollouts.record import Record

Ledger = Mapping[str, Mapping[Identity, AppliedRow]]
"""By cluster the last apply of each object."""


class JournalSnapshot(Struct, frozen=True, kw_only=True):
    """The state that outlives a round; empty where there is no journal (a pull-request check).

    `has_history`: one complete round has been recorded, before which nothing is deleted. `record_key`: with which
    Secret values were hashed when they were recorded.
    """

    ledger: Ledger = field(default_factory=dict)
    observations: Observations = field(default_factory=Observations)
    """Previous placements and constraints; its clusters are not used."""
    released: Mapping[str, Mapping[Identity, str]] = field(default_factory=dict)
    """By cluster the uids of objects that were released there and may be taken back."""
    cluster_uids: Mapping[str, str] = field(default_factory=dict)
    record_key: bytes = b""
    has_history: bool = True
    suspensions: tuple[SuspensionRecord, ...] = ()
    losses: Losses = field(default_factory=Losses)
    """Counted by the guards beside the deletions that are due."""
    timers: Mapping[str, str] = field(default_factory=dict)
    """Since when applications have been unhealthy, by the names that `stages.timers` gives them."""
    rollouts: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)
    """By Rollout and cluster the active record."""
    former: str = ""
    """The revision of the last round."""
    unanswered: tuple[Intent, ...] = ()
    """Requests whose answers never came: their objects have to be looked at."""

    def row(self, cluster: str, identity: Identity) -> AppliedRow | None:
        """Return the last apply of an object in a cluster; None: it was not applied there."""
        rows = self.ledger.get(cluster)
        return rows.get(identity) if rows else None
