"""Paths of a trial's store that cannot be read for a while: the last good content has to stay in force."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from reconciler.api.problem import Problem, Source
from tests.fakes.memory_source import Content


def _unreadable(code: str, message: str) -> Callable[[str], Mapping[str, Content]]:
    return lambda path: {path: Problem(source=Source(path), code=code, message=message)}


def _renamed(path: str) -> Mapping[str, Content]:
    name = path.replace(".yaml", "-\\xe9.yaml")
    return {name: Problem(source=Source(name), code="unreadable-name", message="the name is not UTF-8")}


SPOILED: Final[tuple[Callable[[str], Mapping[str, Content]], ...]] = (
    _unreadable("lfs-pointer", "a Git LFS pointer stands in place of the content"),
    _unreadable("broken-link", "it links to nothing"),
    _unreadable("file-too-large", "it is too large"),
    _renamed,
    lambda path: {f"{path}/README.md": "moved"},
    lambda path: {path: "apiVersion: v1\nkind: ConfigMap\n  metadata: [\n"},
    lambda path: {path: "kind: PropagationPolicy\napiVersion: policy.one.alibabacloud.com/v1alpha1\n"
                        "metadata: {name: broken, namespace: demo}\nspec: {placement: 7}\n"},
)  # fmt: skip
"""By path what stands there, or in its place."""


class SpoiledPaths:
    """Return the spoiled paths, and what stands there."""

    def __init__(self) -> None:
        """All can be read."""
        self.paths: dict[str, Mapping[str, Content]] = {}

    def spoil(self, path: str, rng: random.Random) -> None:
        self.paths[path] = rng.choice(SPOILED)(path)

    def mend(self) -> None:
        """All can be read."""
        self.paths.clear()

    def over(self, files: Mapping[str, str]) -> dict[str, Content]:
        """The files as the store has them now."""
        found: dict[str, Content] = {path: text for path, text in files.items() if path not in self.paths}
        for there in self.paths.values():
            found |= there
        return found
