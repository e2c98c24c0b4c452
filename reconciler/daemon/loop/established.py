"""Copies whose clusters tell between two rounds what they serve: the journal has to know.

Source: `stages.moves`: with how many replicas a copy is established, and its base, seen while nothing is on its way.
"""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.loop.state import State
from reconciler.model.binding import Binding
from reconciler.model.journal_snapshot import Ledger
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import LiveObject
from reconciler.model.refs import Identity
from reconciler.stages.decision import RUNS_ONCE
from reconciler.stages.moves import Available, Lacking, Rest, availability_of, with_rest


class Established:
    """What copies were seen at rest with since the journal was told last."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self._seen: dict[tuple[str, Identity], Rest] = {}

    def note(self, state: State, cluster: str, live: LiveObject) -> None:
        """Take note of a copy that is as wanted, if what it serves is known and that is news."""
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
        """The state once the journal was told. What was written or removed since then counts no more."""
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
    """Whether every copy is where it belongs, with the replicas that it is to have, and there is no other."""
    rows = {name: rows[binding.identity].replicas for name, rows in ledger.items() if binding.identity in rows}
    return rows == dict(binding.targets)


def _is_same(row: AppliedRow, rest: Rest) -> bool:
    return row.uid == rest.uid and (row.replicas or 0) == rest.replicas
