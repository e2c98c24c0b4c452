"""The distribution of test files to the worker processes of `make test`.

A file is one item of a worker, which collects its tests when it runs it, so that each file is collected once and not by
every worker. Its tests stay together, since they share fixtures. Real clusters cost processor time even when nothing
happens in them, so only a few workers start clusters and take the files that use them. Files that take long come first,
so that no worker is left with one at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.workermanage import WorkerController, parse_tx_spec_config

CLUSTER_WORKERS: Final = 2
"""Workers that start real clusters. With more of them the idle clusters take what two cores have for the tests."""

LONG_FIRST: Final = (
    "tests/e2e/",
    "tests/security/",
    "tests/unit/test_dockerfile.py",
    "tests/contract/",
    "tests/docs/",
    "tests/properties/",
    "tests/unit/controller/",
)
"""Files with slow tests, seconds each, longest first. All others take milliseconds."""

PAUSE: Final = "pause"
"""The last item of every worker. A worker runs an item once it has the next one: with a pause behind each file, the
file after it is chosen when the worker is free, and not before."""

ROOT: Final = Path(__file__).parents[1]


class WorkerItem(pytest.Item):
    """The last item of a worker, which runs nothing; it is no test and has no report."""

    def run_all(self, following: pytest.Item | None) -> None:
        """Run the tests of this item, before the item that follows."""

    def runtest(self) -> None:
        """Refuse: tests run one by one."""
        raise NotImplementedError


class FileItem(WorkerItem):
    def __init__(self, *, module: pytest.Module, **others: Any) -> None:
        """Hold the module, which is not imported yet."""
        super().__init__(**others)
        self._module = module

    def run_all(self, following: pytest.Item | None) -> None:
        """Collect the tests of the file and run those that are selected."""
        session = self.session
        place = session.items.index(self)
        tests = list(session.genitems(self._module))
        self.config.hook.pytest_collection_modifyitems(session=session, config=self.config, items=tests)
        for test, after in zip(tests, [*tests[1:], following], strict=False):
            session.items[place] = test  # xdist checks that a report is of the item that it runs
            self.config.hook.pytest_runtest_protocol(item=test, nextitem=after)
            if session.shouldfail or session.shouldstop:
                break


class FileScheduling:
    """Gives files to workers, those on real clusters to `CLUSTER_WORKERS` of them: what xdist calls a `Scheduling`."""

    def __init__(self, config: pytest.Config) -> None:
        """Nothing is collected yet."""
        self._count = len(parse_tx_spec_config(config))
        self._items: list[str] = []
        self._left: list[str] = []
        self._running: dict[WorkerController, str | None] = {}
        self._collected: set[WorkerController] = set()
        self._on_clusters: set[WorkerController] = set()

    @property
    def nodes(self) -> list[WorkerController]:
        """The workers that have not ended."""
        return list(self._running)

    @property
    def collection_is_completed(self) -> bool:
        """Return whether all workers of the start have sent their files."""
        return bool(self._items) and len(self._collected) >= self._count

    @property
    def tests_finished(self) -> bool:
        """Return whether no file is left or running."""
        return self.collection_is_completed and not self.has_pending

    @property
    def has_pending(self) -> bool:
        """Return whether a file is left or running."""
        return bool(self._left) or any(self._running.values())

    def add_node(self, node: WorkerController) -> None:
        """Take note of a worker that begins to collect."""
        self._running[node] = None

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take the files of a worker, which are the same for all."""
        if not self._items:
            self._items = list(collection)
            self._left = sorted(self._items[:-1], key=urgency)
        assert list(collection) == self._items, "workers found different files"
        self._collected.add(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Give the worker another file when it has run one."""
        if self._items[item_index] != PAUSE:
            self._running[node] = None
            self._assign(node)

    def mark_test_pending(self, item: str) -> None:
        """Refuse: no test is tried again."""
        raise NotImplementedError

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Refuse: no worker has a file that it does not run."""
        raise NotImplementedError

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the file in which the worker crashed, which fails and is not tried again; None when it ended well."""
        self._on_clusters.discard(node)
        return self._running.pop(node)

    def schedule(self) -> None:
        """Give a file to each worker that has none."""
        for node in self.nodes:
            if self._running[node] is None and not node.shutting_down:
                self._assign(node)

    def _assign(self, node: WorkerController) -> None:
        file = self._next_file(node)
        if file is None:
            node.shutdown()
            return
        if uses_clusters(file_of(file)):
            self._on_clusters.add(node)
        self._left.remove(file)
        self._running[node] = file
        node.send_runtest_some([self._items.index(file), len(self._items) - 1])

    def _next_file(self, node: WorkerController) -> str | None:
        """The file that the worker is to take next, None when what is left is not for it."""
        if node not in self._on_clusters and len(self._on_clusters) >= CLUSTER_WORKERS:
            return next((file for file in self._left if not uses_clusters(file_of(file))), None)
        # One that starts clusters takes the files on clusters first, since few others do.
        return min(self._left, key=lambda file: not uses_clusters(file_of(file)), default=None)


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def text_of(file: str) -> str:
    """The text of a file of this repository, nothing of another one."""
    path = ROOT / file
    return path.read_text(encoding="utf-8") if path.exists() else ""


def uses_clusters(file: str) -> bool:
    """Return whether a file has tests on real clusters, by its marks or its folder's."""
    return any("mark.apiserver" in text_of(part) for part in (file, str(Path(file).with_name("conftest.py"))))


def urgency(file: str) -> tuple[int, int]:
    """Sorts files by when they should begin: the long ones first."""
    kind = next((place for place, prefix in enumerate(LONG_FIRST) if file.startswith(prefix)), len(LONG_FIRST))
    return kind, -len(text_of(file_of(file)))
