"""The work queue of the next round. Events and timers enqueue, rounds empty it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct, field

from reconciler.model.refs import Identity


class Agenda(Struct):
    """`identities`: wherever they are. `copies`: by cluster, what happened there. `clusters`: everything in them.

    `capacity`: nodes and pods have to be read again; what follows from them is a matter of the decision.
    `reconnect`: how clusters are reached has to be read again. `unanswered`: requests without an answer have to be
    looked into. `stages`: rollouts have to be judged. `reload`: somebody waits for the end of the round that does all
    this.
    """

    everything: bool = True
    identities: set[Identity] = field(default_factory=set)
    copies: dict[str, set[Identity]] = field(default_factory=dict)
    clusters: set[str] = field(default_factory=set)
    store: bool = True
    capacity: bool = False
    unanswered: bool = False
    reconnect: bool = False
    reload: bool = False
    stages: bool = False
    restored: set[str] = field(default_factory=set)
    """Restored clusters, now in an earlier state: earlier observations of them are void."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def mark(self, *identities: Identity) -> None:
        """Look at these, wherever they are."""
        self.identities.update(identities)
        self.wake.set()

    def mark_in(self, cluster: str, identities: Iterable[Identity]) -> None:
        """Look at these in one cluster, where something may have happened to them."""
        found = set(identities)
        if found:
            self.copies.setdefault(cluster, set()).update(found)
            self.wake.set()

    def mark_cluster(self, *clusters: str) -> None:
        """Look at everything in these clusters: one that came back, or left."""
        self.clusters.update(clusters)
        self.wake.set()

    def mark_restored(self, cluster: str) -> None:
        """Discard the observations of a cluster, and enqueue all of it: it went back to an earlier state."""
        self.restored.add(cluster)
        self.mark_cluster(cluster)

    def mark_everything(self) -> None:
        """Look at everything: a start, a resync."""
        self.everything = True
        self.wake.set()

    def mark_reconnect(self) -> None:
        """Read again how clusters are reached."""
        self.reconnect = True
        self.wake.set()

    def mark_stages(self) -> None:
        """Judge where rollouts stand."""
        self.stages = True
        self.wake.set()

    def mark_store(self) -> None:
        """Read the store."""
        self.store = True
        self.wake.set()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        due = self.everything or self.identities or self.copies or self.clusters or self.store or self.capacity
        return not (due or self.unanswered or self.stages or self.reconnect)
