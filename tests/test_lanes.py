"""`make test` gives files as a whole to its workers, and those on real clusters to a few of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.lanes import LANES, Lanes

ON_CLUSTERS = [f"tests/e2e/{name}.py" for name in ("test_moves", "test_kinds", "test_failover", "test_example_store")]
WITHOUT = ["tests/unit/test_engine.py", "tests/security/test_bombs.py", "tests/golden/test_help.py"]
TESTS = [f"{file}::test_{number}" for file in [*WITHOUT, *ON_CLUSTERS] for number in range(4)]


class Worker:
    """A worker that runs what it is given, one test after another."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[str] = []
        self.done = 0

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [TESTS[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(test.partition("::")[0] for test in self.given))


def begun(count: int) -> tuple[Any, list[Worker]]:
    """A scheduler whose workers have their first files."""
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=option, getvalue=lambda name: [f"{count}*popen"])
    scheduler: Any = Lanes(config, SimpleNamespace(loadscopesched=lambda *words: None))  # type: ignore[arg-type]
    workers = [Worker(f"gw{number}") for number in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()
    return scheduler, workers


def run(scheduler: Any, workers: list[Worker]) -> None:
    """Every worker does a test in turn, until nothing is left to do."""
    while busy := [worker for worker in workers if worker.done < len(worker.given)]:
        for worker in busy:
            scheduler.mark_test_complete(worker, TESTS.index(worker.given[worker.done]))
            worker.done += 1


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_every_test_runs_once_and_those_of_a_file_on_one_worker(count: int) -> None:
    scheduler, workers = begun(count)
    run(scheduler, workers)
    assert sorted(test for worker in workers for test in worker.given) == sorted(TESTS)
    assert len([file for worker in workers for file in worker.files]) == len(WITHOUT) + len(ON_CLUSTERS)
    assert all(worker.shutting_down for worker in workers)


def test_few_workers_start_clusters_and_the_others_do_not_wait_for_them() -> None:
    scheduler, workers = begun(4)
    lanes = [worker for worker in workers if worker.files[0] in ON_CLUSTERS]
    assert len(lanes) == LANES
    assert [worker.files[0] for worker in workers if worker not in lanes] == [WITHOUT[1], WITHOUT[0]]
    run(scheduler, workers)
    assert {worker.gateway.id for worker in workers if {*worker.files} & {*ON_CLUSTERS}} == {
        lane.gateway.id for lane in lanes
    }


def test_the_files_of_a_worker_that_crashed_go_to_others() -> None:
    scheduler, workers = begun(3)
    crashed, *left = workers
    assert scheduler.remove_node(crashed) == crashed.given[0]
    run(scheduler, left)
    assert {file for worker in left for file in worker.files} == {*WITHOUT, *ON_CLUSTERS}
