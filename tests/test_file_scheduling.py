"""`make test` gives files as a whole to its workers, and those on real clusters to a few of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.file_scheduling import CLUSTER_WORKERS, PAUSE, FileScheduling

ROOT = Path(__file__).parents[1]
ON_CLUSTERS = [f"tests/e2e/{name}.py" for name in ("test_moves", "test_kinds", "test_failover", "test_example_store")]
WITHOUT = ["tests/unit/test_engine.py", "tests/security/test_crashes.py", "tests/golden/test_help.py"]
FILES = [*WITHOUT, *ON_CLUSTERS]


class Worker:
    """A worker that runs what it is given, one file after another."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.files: list[str] = []
        self.done = 0

    def send_runtest_some(self, indices: list[int]) -> None:
        file, pause = indices
        assert pause == len(FILES)
        self.files.append(FILES[file])

    def shutdown(self) -> None:
        self.shutting_down = True


def begun(count: int) -> tuple[Any, list[Worker]]:
    """A scheduler whose workers have their first files."""
    config: Any = SimpleNamespace(getvalue=lambda name: [f"{count}*popen"])
    scheduler: Any = FileScheduling(config)
    workers = [Worker(f"gw{number}") for number in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, [*FILES, PAUSE])
    scheduler.schedule()
    return scheduler, workers


def run(scheduler: Any, workers: list[Worker]) -> None:
    """Every worker runs a file in turn, until nothing is left to do."""
    while busy := [worker for worker in workers if worker.done < len(worker.files)]:
        for worker in busy:
            scheduler.mark_test_complete(worker, FILES.index(worker.files[worker.done]))
            scheduler.mark_test_complete(worker, len(FILES))
            worker.done += 1


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_every_file_runs_once(count: int) -> None:
    scheduler, workers = begun(count)
    assert scheduler.has_pending
    assert not scheduler.tests_finished
    run(scheduler, workers)
    assert sorted(file for worker in workers for file in worker.files) == sorted(FILES)
    assert all(worker.shutting_down for worker in workers)
    assert scheduler.tests_finished


def test_few_workers_start_clusters_and_the_others_do_not_wait_for_them() -> None:
    scheduler, workers = begun(4)
    starters = [worker for worker in workers if worker.files[0] in ON_CLUSTERS]
    assert len(starters) == CLUSTER_WORKERS
    assert [worker.files[0] for worker in workers if worker not in starters] == [WITHOUT[1], WITHOUT[0]]
    run(scheduler, workers)
    assert {worker.gateway.id for worker in workers if {*worker.files} & {*ON_CLUSTERS}} == {
        starter.gateway.id for starter in starters
    }


def test_a_file_in_which_a_worker_crashed_fails_and_the_others_run() -> None:
    scheduler, workers = begun(3)
    crashed, *left = workers
    assert [scheduler.remove_node(crashed)] == crashed.files
    run(scheduler, left)
    assert {file for worker in left for file in worker.files} == {*FILES} - {*crashed.files}


def test_a_run_fails_of_a_test_or_a_file_that_fails_and_where_no_test_is_selected(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_two.py").write_text("def test_good(): pass\n\ndef test_bad(): raise ValueError\n")
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "test_also.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('one', [1, 2])\ndef test(one): pass\n"
    )
    config = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]

    def outcome(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "2", *config, *words, str(tmp_path)],
            cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return done.returncode, re.sub(r"[= ]+|in.*", " ", done.stdout.splitlines()[-1]).strip()

    assert outcome() == (1, "1 failed, 3 passed, 1 error")
    assert outcome("-k", "no_such_name", "--ignore", str(tmp_path / "test_broken.py"))[0] == 5
