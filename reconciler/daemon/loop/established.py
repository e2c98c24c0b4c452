"""Copies whose availability became known between two rounds: the journal needs it.

Source: `stages.moves`: the established number of replicas, and the base, seen without pending writes.
"""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.loop.state import State
from reconciler.model.binding import Binding
from reconciler.model.ledger import AppliedRow, Ledger
from reconciler.model.observation import LiveObject
from reconciler.model.refs import Identity
from reconciler.stages.decision import RUNS_ONCE
from reconciler.stages.moves import Available, Lacking, Rest, availability_of, with_rest


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
