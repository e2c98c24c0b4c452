"""One commit after another in a process that has the fleet: `python -m bench.incremental 10000 [unkind]`."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from bench import corpus, unkind
from bench.measure import percentile, timed
from bench.members import members_of
from bench.repository import commit_files
from reconciler.api.clusters import Observations, Read
from reconciler.api.ledger import JournalSnapshot
from reconciler.api.refs import Identity
from reconciler.controller.store_in_force import StoreInForce
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import plan_round, previous_of, render_schedule
from reconciler.render import changed_identities
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet
from reconciler.store.directory import StorePast
from reconciler.store.git.git_past import SnapshotReader
from reconciler.store.git.snapshot import GitStore

Result = TypeVar("Result")

NOW = "2026-11-21T10:00:00Z"
COMMITS = 40
IN_STEP = 40
"""Clusters whose objects are compared; bodies of all hundred would not fit beside the tests of others."""


class Loop(Struct):
    """The work of the control loop between a commit and its plan, and the CPU seconds of each step."""

    store: GitStore
    reader: SnapshotReader = field(default_factory=SnapshotReader)
    in_force: StoreInForce = field(default_factory=lambda: StoreInForce({}, StorePast()))
    memo: ScheduleTables = field(default_factory=ScheduleTables)
    snapshot: FleetSnapshot | None = None
    schedule: Schedule | None = None
    observations: Observations = field(default_factory=corpus.observations)
    steps: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, commit: str) -> int:
        """Plan a commit; the number of changes."""
        files = self._step("read", lambda: self.reader.read(self.store, commit))
        fleet = self._step("parse", lambda: self.in_force.parse(files))
        schedule = self._step(
            "decide",
            lambda: schedule_fleet(fleet, self.observations, NOW, interpreters=BUILT_IN_KINDS, tables=self.memo),
        )
        changed = self._step("compare", lambda: changed_identities(self.schedule, schedule, self.memo.changed))
        self.schedule = schedule
        if self.snapshot is None:
            return 0
        # What was asked of the members: what they do not have is proven absent.
        members = {
            name: replace(member, absent=frozenset(changed - member.objects.keys()))
            for name, member in self.snapshot.members.items()
            if isinstance(member, Read)
        }
        schedule, restaged = self.restaged(schedule, self.snapshot)
        snapshot = replace(
            self.snapshot,
            fleet=fleet,
            members=members,
            only=frozenset(changed | restaged),
            observations=self.observations,
        )
        return len(self._step("settle", lambda: plan_round(snapshot, schedule)).plan.changes)

    def restaged(self, schedule: Schedule, snapshot: FleetSnapshot) -> tuple[Schedule, set[Identity]]:
        """Without a Rollout every cluster gets what HEAD has."""
        return schedule, set()

    def _step(self, name: str, run: Callable[[], Result]) -> Result:
        seconds, result = timed(run)
        self.steps.setdefault(name, []).append(seconds)
        return result

    def totals(self) -> list[float]:
        """CPU seconds of each commit, from its id to its plan."""
        return [sum(parts) for parts in zip(*self.steps.values(), strict=True)]


def main(workloads: int, fleet: str = "") -> dict[str, float]:
    """CPU seconds of following a commit: one workload, a new file, one policy over many workloads, a lost cluster.

    `fleet`: `unkind`, or the usual one.
    """
    gc.disable()
    twin = unkind if fleet == "unkind" else corpus
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        first = commit_files(root, twin.store_files(workloads))
        loop = Loop(GitStore(root))
        loop.follow(first)
        found = settle_everything(loop)
        gc.collect()
        gc.freeze()
        namespaces = workloads // corpus.PER_NAMESPACE
        found |= series(loop, root, "commit", COMMITS, lambda n: workload(twin.workload_file, n % namespaces, n))
        found |= series(loop, root, "new_file", 10, lambda n: (f"apps/new-{n}.yaml", _new_file(n)))
        found |= series(loop, root, "policy", 6, lambda n: ("policies/wide-3.yaml", _policy(n)))
        found["cluster_lost"], _ = timed(lambda: _lose_cluster(loop))
    return found


def settle_everything(loop: Loop) -> dict[str, float]:
    """Compare members that are in step; their number of objects, and the seconds."""
    assert loop.schedule is not None, "the first commit was decided"
    schedule, fleet = loop.schedule, loop.schedule.fleet
    loop.observations = replace(loop.observations, previous=previous_of(schedule.bindings))
    loop.schedule = schedule = schedule_fleet(
        fleet, loop.observations, NOW, interpreters=BUILT_IN_KINDS, tables=loop.memo
    )
    manifests = render_schedule(schedule).manifests
    names = sorted({manifest.cluster for manifest in manifests})[:IN_STEP]
    members, rows = members_of((found for found in manifests if found.cluster in names), fleet.settings.name)
    del manifests
    gc.freeze()
    snapshot = FleetSnapshot(
        fleet=fleet,
        interpreters=BUILT_IN_KINDS,
        now=NOW,
        members=members,
        observations=loop.observations,
        journal=JournalSnapshot(ledger=rows),
    )
    seconds, planned = timed(lambda: plan_round(snapshot, schedule))
    assert not planned.plan.changes, [str(change.identity) for change in planned.plan.changes[:3]]
    loop.snapshot = snapshot
    return {"settle": seconds, "settle_objects": sum(len(member.objects) for member in members.values())}


def series(
    loop: Loop, root: Path, name: str, rounds: int, edit: Callable[[int], tuple[str, bytes]]
) -> dict[str, float]:
    """The median and the 99th percentile of a series of commits; the first one warms up."""
    loop.steps = {}
    changes = [loop.follow(commit_files(root, [edit(number)])) for number in range(rounds + 1)]
    totals = loop.totals()[1:]
    found = {f"{name}_p50": percentile(totals, 0.5), f"{name}_p99": percentile(totals, 0.99)}
    found[f"{name}_changes"] = sum(changes)
    if name == "commit":
        found |= {f"step_{step}": percentile(seconds[1:], 0.5) for step, seconds in loop.steps.items()}
    return found


def workload(text_of: Callable[[int, int, int], bytes], namespace: int, number: int) -> tuple[str, bytes]:
    """A file of the store with another version of one workload."""
    return corpus.file_path(namespace, number % 50), text_of(namespace, number % 50, 2 + number)


def _new_file(number: int) -> bytes:
    return corpus.workload_file(0, 6).replace(b"name: web-006", f"name: new-{number}".encode())


def _policy(number: int) -> bytes:
    return corpus.wide_policy(3, 2 + number % 2).encode()


def _lose_cluster(loop: Loop) -> Schedule:
    """One cluster does not answer any more: all placements are found again."""
    assert loop.schedule is not None, "the first commit was decided"
    lost = replace(loop.observations.clusters["m003"], reachable=False)
    seen = replace(loop.observations, clusters={**loop.observations.clusters, "m003": lost})
    return schedule_fleet(loop.schedule.fleet, seen, NOW, interpreters=BUILT_IN_KINDS, tables=loop.memo)


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1]), *sys.argv[2:]), sys.stdout)
