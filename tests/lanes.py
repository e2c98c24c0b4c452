"""The distribution of test files to the worker processes of `make test`.

A file stays on one worker, since its tests share fixtures. Real clusters cost processor time even when nothing happens
in them, so only a few workers, the lanes, start clusters and take the files that use them. Files that take long come
first, so that no worker is left with one at the end.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

LANES = 2
"""Workers that start real clusters. With more of them the idle clusters take what two cores have for the tests."""

LONG_FIRST = (
    "tests/e2e/",
    "tests/security/",
    "tests/unit/test_dockerfile.py",
    "tests/contract/",
    "tests/docs/",
    "tests/properties/",
    "tests/unit/controller/",
)
"""Files with slow tests, seconds each, longest first. All others take milliseconds."""

ROOT = Path(__file__).parents[1]


class Lanes(LoadScopeScheduling):
    """Gives whole files to workers, those on real clusters to `LANES` of them."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        """No worker is a lane yet."""
        super().__init__(config, log)
        self._lanes: set[WorkerController] = set()

    def remove_node(self, node: WorkerController) -> str | None:
        """Another worker becomes the lane that this one was."""
        self._lanes.discard(node)
        return super().remove_node(node)

    def _split_scope(self, nodeid: str) -> str:
        return file_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and not node.shutting_down and self._next_file(node) is None:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = self._next_file(node)
        if file is None:
            return
        if uses_clusters(file):
            self._lanes.add(node)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_file(self, node: WorkerController) -> str | None:
        """The file that the worker is to take next, None when what is left is not for it."""
        may_use = node in self._lanes or len(self._lanes) < LANES
        left = [file for file in self.workqueue if may_use or not uses_clusters(file)]
        # A lane takes the files of lanes first, since nobody else does.
        return min(left, key=lambda file: (not uses_clusters(file), *urgency(file, self.workqueue[file])), default=None)


def file_of(nodeid: str) -> str:
    """The file of a test: all that stays together."""
    return nodeid.partition("::")[0]


@cache
def uses_clusters(file: str) -> bool:
    """Return whether a file has tests on real clusters, by its marks or its folder's."""
    path = ROOT / file
    marks = [part.read_text() for part in (path, path.with_name("conftest.py")) if part.exists()]
    return any("mark.apiserver" in text for text in marks)


def urgency(file: str, tests: dict[str, bool]) -> tuple[int, int]:
    """Sorts files by when they should begin: the long ones first."""
    kind = next((place for place, prefix in enumerate(LONG_FIRST) if file.startswith(prefix)), len(LONG_FIRST))
    return kind, -len(tests)
