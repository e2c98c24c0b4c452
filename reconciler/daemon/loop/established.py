"""Copies that begin to serve between two rounds: an event of a watch tells it, and the journal has to know.

Source: `stages.moves`: with how many replicas a copy is established, seen while nothing is on its way.
"""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.loop.state import Situation
from reconciler.interpreters.registry import interpreter_for
from reconciler.model.binding import Binding
from reconciler.model.ledger import AppliedRow
from reconciler.model.observation import Health, LiveObject
from reconciler.model.refs import Identity

_RUNS = frozenset({("batch", "Job"), ("", "Pod")})


class Established:
    """What was seen since the journal was told last: per copy its uid and the replicas."""

    def __init__(self, situation: Situation) -> None:
        """Nothing was seen."""
        self._situation = situation
        self._seen: dict[tuple[str, Identity], tuple[str, int]] = {}

    def look(self, cluster: str, live: LiveObject) -> None:
        """Take note of a copy that is as wanted, if it serves and that is news."""
        situation, identity = self._situation, live.identity
        decision, row = situation.decision, situation.known.ledger.get(cluster, {}).get(identity)
        binding = decision.bindings.get(identity) if decision is not None else None
        if row is None or binding is None or row.uid != live.uid or identity[:2] in _RUNS:
            return
        wanted = binding.replicas_on(cluster) or 0
        if row.established == wanted or not self._is_at_rest(binding):
            return
        if interpreter_for(*identity[:2]).health(live.body) is Health.HEALTHY:
            self._seen[cluster, identity] = (live.uid, wanted)

    def _is_at_rest(self, binding: Binding) -> bool:
        """Whether every copy is where it belongs, with the replicas that it is to have, and there is no other."""
        wanted = dict(binding.targets)
        ledger = self._situation.known.ledger
        rows = {name: rows[binding.identity].replicas for name, rows in ledger.items() if binding.identity in rows}
        return rows == wanted

    def record(self, journal: Journal) -> None:
        """Tell the journal. What was written or removed since then counts no more."""
        seen, self._seen = self._seen, {}
        ledger = journal.ledger()
        rows = [
            replace(row, established=replicas)
            for (cluster, identity), (uid, replicas) in sorted(seen.items())
            if (row := ledger.get(cluster, {}).get(identity)) is not None and _is_same(row, uid, replicas)
        ]
        if rows:
            journal.record_applied(rows)
            self._situation.known = replace(self._situation.known, ledger=journal.ledger())


def _is_same(row: AppliedRow, uid: str, replicas: int) -> bool:
    return row.uid == uid and (row.replicas or 0) == replicas
