"""The commits of a store as a command finds them: beside the journal, or in the user's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reconciler.adapters.sources.commits import Commits


def commits_of(store: str, *, beside: Path) -> Commits:
    """The commits of a store. `beside`: the journal; a service keeps its clones there."""
    from reconciler.adapters.sources.commits import Commits

    def clones() -> Iterator[Path]:
        from reconciler.cli.reading import cache_folder

        yield beside.parent
        cache = cache_folder()
        if cache is not None:
            yield cache

    return Commits(store, clones)
