"""One commit after another under a Rollout: `python -m bench.staged 10000` prints JSON.

A hundred clusters in three stages, all of them at the commit before; each commit begins in the first stage.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from msgspec import field
from msgspec.structs import replace

from bench import corpus
from bench.incremental import COMMITS, NOW, Loop, series, settle_everything, workload
from bench.repository import commit_files
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record, ReleaseFacts
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.planner import copies_in
from reconciler.rollouts import SelectedTables, changed_by_staging, staged, stand
from reconciler.scheduler import Schedule

_CANARY = 5


class StagedLoop(Loop):
    """The loop with a Rollout between schedule and plan."""

    records: dict[str, Record] = field(default_factory=dict)
    older: dict[str, Fleet] = field(default_factory=dict)
    tables: SelectedTables = field(default_factory=SelectedTables)
    before: Schedule | None = None
    copies: dict[Identity, set[str]] = field(default_factory=dict)

    def restaged(self, schedule: Schedule, snapshot: FleetSnapshot) -> tuple[Schedule, set[Identity]]:
        """The schedule as the revisions in force leave it, and what is rendered otherwise by that."""
        return self._step("stage", lambda: self._staged(schedule, snapshot))

    def _staged(self, schedule: Schedule, snapshot: FleetSnapshot) -> tuple[Schedule, set[Identity]]:
        fleet = schedule.fleet
        named = {record.revision for record in self.records.values()} - {fleet.revision}
        self.older = {revision: self.older[revision] for revision in self.older if revision in named}
        facts = ReleaseFacts(fleets=self.older, order=(*self.older, fleet.revision))
        staging, progress = stand(schedule, self.tables.update(schedule), {"all": self.records}, facts, NOW)
        after = staged(schedule, staging, progress, snapshot.journal.ledger, self.copies, self.observations.previous)
        changed = changed_by_staging(self.before, after)
        self.records = {name: replace(found, completed_at=NOW) for name, found in progress["all"].records.items()}
        self.before = after
        self.older = {**self.older, fleet.revision: fleet}
        return after, changed


def rollout() -> bytes:
    """Five clusters, then a tenth at once of what is left."""
    names = [f"cluster-{index:03d}" for index in range(_CANARY)]
    stages: list[dict[str, Any]] = [
        {"name": "canary", "clusters": {"clusterNames": names}, "maxConcurrency": _CANARY, "after": {"approval": True}},
        {"name": "rest", "clusters": {}, "maxConcurrency": "10%"},
    ]
    body = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"},
            "spec": {"stages": stages}}  # fmt: skip
    return yaml.safe_dump(body).encode()


def main(workloads: int) -> dict[str, float]:
    """CPU seconds from the id of a commit of one workload to its plan: what the first stage gets of it."""
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        first = commit_files(root, [*corpus.store_files(workloads), ("rollout.yaml", rollout())])
        loop = StagedLoop(_store(root))
        loop.follow(first)
        settle_everything(loop)
        assert loop.snapshot is not None, "everything was settled"
        loop.copies = copies_in(loop.snapshot.journal.ledger)
        loop.older = {first: loop.snapshot.fleet}
        loop.records = {
            name: Record(revision=first, begun_at=NOW, completed_at=NOW) for name in loop.snapshot.fleet.clusters
        }
        gc.collect()
        gc.freeze()
        namespaces = workloads // corpus.PER_NAMESPACE
        return series(loop, root, "commit", COMMITS, lambda n: workload(corpus.workload_file, n % namespaces, n))


def _store(root: Path) -> Any:
    from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415

    return GitStore(root)


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1])), sys.stdout)
