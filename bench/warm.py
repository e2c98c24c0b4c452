"""The plan of a second start, with the parse cache of the first: `python -m bench.warm 10000` prints JSON."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench import corpus, unkind
from bench.measure import make_bodies, timed
from bench.repository import commit_files
from reconciler.fleet import ParsedFile, parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.planner import render_schedule
from reconciler.render import Rendering
from reconciler.scheduler import schedule_fleet
from reconciler.store.git.snapshot import GitStore
from reconciler.store.parse_cache import ParseCache

NOW: Final = "2026-11-21T10:00:00Z"
ROUNDS: Final = 5
FLEETS: Final[dict[str, Callable[[int], Iterator[tuple[str, bytes]]]]] = {
    "warm": corpus.store_files,
    "warm_plain": corpus.plain_files,
    "warm_unkind": unkind.store_files,
}


def main(workloads: int, rounds: int = ROUNDS) -> dict[str, float]:
    """CPU seconds of the best of several second starts, each in a process of its own, by fleet."""
    found: dict[str, float] = {}
    for name, files in FLEETS.items():
        with tempfile.TemporaryDirectory() as folder:
            commit = commit_files(Path(folder) / "store", files(workloads))
            first = _in_a_process("first", folder, commit)
            starts = [_in_a_process("second", folder, commit) for _ in range(rounds)]
        found |= {f"{name}_{key}": value for key, value in first.items()}
        best = min(starts, key=lambda start: start["total"])
        whole = min(start["bodies"] for start in starts)
        found |= {name: best["total"], f"{name}_load": best["load"], f"{name}_bodies": whole}
        found[f"{name}_parsed"] = best["parsed"]
    return found


def _in_a_process(which: str, folder: str, commit: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.warm", which, folder, commit]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def first(root: Path, commit: str) -> dict[str, float]:
    """A first start, which leaves its cache; how long that takes."""
    parsed: dict[str, ParsedFile] = {}
    parse(GitStore(root / "store").snapshot(commit), parsed)
    saved, _ = timed(lambda: ParseCache(root / "parse.db").save(parsed))
    return {"save": saved}


def second(root: Path, commit: str) -> dict[str, float]:
    """A second start: nothing is parsed, everything is decided and rendered; then bodies that nobody needed yet."""
    store, cache, observations = GitStore(root / "store"), ParseCache(root / "parse.db"), corpus.observations()
    loads: list[float] = []
    anew: list[int] = []

    def plan() -> Rendering:
        read = store.snapshot(commit, known=cache.keys())
        load, parsed = timed(lambda: cache.load(read.files))
        loads.append(load)
        anew.append(len(read.files) - len(parsed))
        return render_schedule(schedule_fleet(parse(read, parsed), observations, NOW, interpreters=BUILT_IN_KINDS))

    total, rendering = timed(plan)
    bodies, _ = timed(lambda: make_bodies(rendering))
    return {"total": total, "load": loads[0], "bodies": total + bodies, "parsed": anew[0]}


if __name__ == "__main__":
    gc.disable()
    match sys.argv[1:]:
        case ["first", folder, commit]:
            answer = first(Path(folder), commit)
        case ["second", folder, commit]:
            answer = second(Path(folder), commit)
        case [workloads]:
            answer = main(int(workloads))
        case _:
            sys.exit(__doc__)
    json.dump(answer, sys.stdout)
