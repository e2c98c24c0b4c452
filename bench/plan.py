"""The whole plan of a generated fleet, in a process of its own: `python -m bench.plan 10000 [unkind]` prints JSON."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bench import corpus, unkind
from bench.measure import make_bodies, peak_rss_mib, timed
from bench.repository import commit_files
from reconciler.api.fleet import StoreFile
from reconciler.fleet import ParsedAsRead, ParsedFile, parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import compare_revisions, render_schedule
from reconciler.policy import claim
from reconciler.scheduler import schedule_fleet
from reconciler.store.git.snapshot import GitStore

NOW = "2026-11-21T10:00:00Z"


class _Timed:
    """A parser of each file as it is read, as commands do, with the CPU seconds that it took."""

    def __init__(self, take: ParsedAsRead) -> None:
        self._take = take
        self.spent_s = 0.0
        self.bytes_read = 0

    def __call__(self, file: StoreFile) -> StoreFile:
        self.bytes_read += len(file.data)
        spent, taken = timed(lambda: self._take(file))
        self.spent_s += spent
        return taken


def main(workloads: int, fleet: str = "") -> dict[str, float]:
    """CPU seconds of each step, with peak memory in MiB. `fleet`: `unkind`, or the usual one."""
    twin = unkind if fleet == "unkind" else corpus
    gc.disable()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        commit = commit_files(root / "store", twin.store_files(workloads))
        changed = ((corpus.file_path(0, n), twin.workload_file(0, n, 2)) for n in range(25))
        head = commit_files(root / "store", changed)
        store = GitStore(root / "store")
        gc.collect()
        started = time.process_time()
        parsed: dict[str, ParsedFile] = {}
        take = _Timed(ParsedAsRead(parsed))
        both, snapshot = timed(lambda: store.snapshot(commit, take=take))
        assembled, parsed_fleet = timed(lambda: parse(snapshot, parsed))
        found |= {"read": both - take.spent_s, "parse": take.spent_s + assembled, "bytes": take.bytes_read}
        gc.freeze()
        observations = corpus.observations()
        found["decide"], schedule = timed(
            lambda: schedule_fleet(parsed_fleet, observations, NOW, interpreters=BUILT_IN_KINDS)
        )
        found["render"], rendering = timed(lambda: render_schedule(schedule))
        found["bodies"], _ = timed(partial(make_bodies, rendering))
        found["cold"] = time.process_time() - started
        found["rss_mib"] = peak_rss_mib()
        found["claim"], _ = timed(lambda: claim(parsed_fleet))
        found["pairs"] = len(rendering.manifests)
        found["problems"] = len(parsed_fleet.problems)
        del rendering
        if workloads > 10_000:
            return found
        later = store.snapshot(head)
        found["check"], plan = timed(
            lambda: compare_revisions(
                parse(snapshot, dict(parsed)),
                parse(later, dict(parsed)),
                observations,
                NOW,
                interpreters=BUILT_IN_KINDS,
            )
        )
        found["check_changes"] = len(plan.changes)
    return found


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1]), *sys.argv[2:]), sys.stdout)
