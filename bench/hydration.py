"""The cost of rendering: processes of `hydrate` where one of many renders changed, and what locks add to `validate`.

With helm on the PATH: python -m bench.hydration [WORKLOADS [RENDERS]]. It prints JSON. All shares are of processor time
within one run, so that other work on the machine concerns both sides.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from click.testing import CliRunner

from bench.corpus import write_store
from bench.repository import commit_files
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.cli.main import cli
from reconciler.cli.store_reading import read_fleet
from reconciler.clock import SystemClock
from reconciler.fleet import ParsedFile
from reconciler.helm.files import lock_problems, tree_of
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.lint import lint
from reconciler.planner import compare_revisions
from reconciler.plugins import with_plugins
from reconciler.report.render_json import rendering
from reconciler.scheduler import schedule_fleet
from reconciler.store.location import locate_store

CHART = Path(__file__).parent.parent / "tests/hydration/store/charts/web"
RENDER = """apiVersion: fleet.reconciler/v1alpha1
kind: Render
metadata: {{name: r{0}}}
spec:
  helm: {{chart: charts/r{0}, namespace: r{0}, values: [values/r{0}.yaml], kubeVersion: "1.36"}}
  variants: [{{name: prod, clusters: {{labelSelector: {{matchLabels: {{stage: prod}}}}}}, values: [values/prod.yaml]}}]
  output: rendered/r{0}
"""


def hydrated_store(root: Path, renders: int, workloads: int) -> None:
    """A store of the usual workloads, and as many renders beside."""
    write_store(root, workloads)
    for name in ("renders", "values"):
        (root / name).mkdir()
    (root / "values/prod.yaml").write_text("replicas: 3\n")
    for number in range(renders):
        shutil.copytree(CHART, root / f"charts/r{number}")
        (root / f"values/r{number}.yaml").write_text(f"env: {{NUMBER: '{number}'}}\n")
        (root / f"renders/r{number}.yaml").write_text(RENDER.format(number))


def hydrate(root: Path, started: list[str]) -> tuple[int, float]:
    """Return how many processes a run started, and the seconds that it took."""
    started.clear()
    begin = time.perf_counter()
    done = CliRunner().invoke(cli, ["hydrate", str(root)])
    assert done.exit_code == 0, (done.output, done.exception)
    return len(started), time.perf_counter() - begin


def cpu_s(run: Callable[[], object], rounds: int = 5) -> float:
    """Processor seconds of the best of several runs."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found)


def validated(root: Path, rev: str | None) -> Fleet:
    """Return what `validate` does beside the locks."""
    fleet = read_fleet(str(root), rev)
    schedule = schedule_fleet(fleet, Observations(), SystemClock().now(), interpreters=with_plugins())
    rendering(schedule)
    lint(fleet, schedule.claims, BUILT_IN_KINDS, [])
    return fleet


def compared(root: Path, parsed: dict[str, ParsedFile]) -> None:
    """Run what `diff --base --head` does beside the locks, where one file is another one."""
    before = read_fleet(str(root), "HEAD~1", as_files=False, parsed=parsed)
    after = read_fleet(str(root), "HEAD", parsed=parsed)
    compare_revisions(before, after, Observations(), SystemClock().now(), interpreters=with_plugins())


def main(workloads: int, renders: int) -> dict[str, float]:
    """The figures."""
    started: list[str] = []
    sys.addaudithook(lambda event, _: started.append(event) if event == "subprocess.Popen" else None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        root = Path(folder) / "store"
        hydrated_store(root, renders, workloads)
        found: dict[str, float] = {}
        found["processes_first"], found["first_s"] = hydrate(root, started)
        found["processes_fresh"], found["fresh_s"] = hydrate(root, started)
        (root / "values/r7.yaml").write_text("env: {NUMBER: 'seven'}\n")
        found["processes_one"], found["one_s"] = hydrate(root, started)
        commit_files(
            Path(folder) / "bare.git",
            [(str(path.relative_to(root)), path.read_bytes()) for path in root.rglob("*") if path.is_file()],
        )
        for name, store, rev in (("directory", root, None), ("commit", Path(folder) / "bare.git", "HEAD")):
            fleet = validated(store, rev)
            with tree_of(locate_store(str(store)), rev, as_files=True) as tree:
                assert not lock_problems(fleet, tree)
                found[f"{name}_locks_s"] = cpu_s(partial(lock_problems, fleet, tree))
            found[f"{name}_validate_s"] = cpu_s(partial(validated, store, rev), rounds=3)
            found[f"{name}_share"] = found[f"{name}_locks_s"] / found[f"{name}_validate_s"]
        bare = Path(folder) / "bare.git"
        commit_files(bare, [("values/unread.yaml", b"a: b\n")])
        found["diff_s"] = cpu_s(lambda: compared(bare, {}), rounds=3)
        found["diff_share"] = found["commit_locks_s"] / found["diff_s"]
    return found


if __name__ == "__main__":
    print(json.dumps(main(*map(int, (*sys.argv[1:], *("10000", "100")[len(sys.argv) - 1 :]))), indent=2))
