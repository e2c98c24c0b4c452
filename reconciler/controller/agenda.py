"""The work queue of the next round. Events and timers enqueue, rounds empty it.

Copies whose availability became known between two rounds: the journal needs it.

Source: `stages.moves`: the established number of replicas, and the base, seen without pending writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.clusters import LiveObject
from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.refs import Identity
from reconciler.controller.loop_state import State
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import Available, Lacking, Rest, availability_of, with_rest
from reconciler.scheduler import RUNS_ONCE


class PendingWork(Struct):
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


class Established:
    """New records of copies at rest since the journal was updated."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self._seen: dict[tuple[str, Identity], Rest] = {}

    def note(self, state: State, cluster: str, live: LiveObject) -> None:
        """Record the availability of a synced copy, if known and new."""
        identity, ledger = live.identity, state.known.ledger
        decision, row = state.decision, ledger.get(cluster, {}).get(identity)
        binding = decision.bindings.get(identity) if decision is not None else None
        if row is None or decision is None or binding is None or row.uid != live.uid or identity[:2] in RUNS_ONCE:
            return
        replicas = binding.replicas_on(cluster)
        wanted = replicas or 0
        if row.established == wanted or not _is_at_rest(binding, ledger):
            return
        match availability_of(live.body, decision.interpreters.of(*identity[:2])):
            case Available():
                self._seen[cluster, identity] = Rest(uid=live.uid, replicas=wanted, is_available=True)
            case Lacking() if replicas is not None and row.base != wanted:
                self._seen[cluster, identity] = Rest(uid=live.uid, replicas=wanted, is_available=False)

    def record(self, state: State, journal: Journal) -> State:
        """Return the state after updating the journal. Copies written or removed since do not count."""
        seen, self._seen = self._seen, {}
        ledger = journal.ledger()
        rows = [
            with_rest(row, rest)
            for (cluster, identity), rest in sorted(seen.items())
            if (row := ledger.get(cluster, {}).get(identity)) is not None and _is_same(row, rest)
        ]
        if not rows:
            return state
        journal.record_applied(rows)
        return replace(state, known=replace(state.known, ledger=journal.ledger()))


def _is_at_rest(binding: Binding, ledger: Ledger) -> bool:
    """Return whether every copy is in its cluster with its number of replicas, and there is no other."""
    rows = {name: rows[binding.identity].replicas for name, rows in ledger.items() if binding.identity in rows}
    return rows == dict(binding.targets)


def _is_same(row: AppliedRow, rest: Rest) -> bool:
    return row.uid == rest.uid and (row.replicas or 0) == rest.replicas
