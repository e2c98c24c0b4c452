"""Descent among commits, within a limit of steps: a history may be written by anyone, as long as they like.

libgit2 reads the whole of each commit on its way, however large, and all of a history before it sorts it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pygit2

from reconciler.store.git.repository import commit_at

_WALKED_MAX: Final = 50_000
"""Steps from a commit to a parent: a second. What is older than all of these is older than any that matters."""


def is_ancestor(repository: Any, one: Any, other: Any) -> bool:
    """Return whether a commit is another one or comes before it, by their ids.

    Raises:
        StoreError: a commit between them is too large, or none.
    """
    return bool(descendants(repository, [other, one])[one] & 1)


def descendants(repository: Any, commits: Iterable[Any]) -> dict[Any, int]:
    """Return by id of a commit which of some descend from it or are it: a bit for each, the first one's the lowest.

    A commit is walked again when another of them turns out to descend from it, so that times, which are what clocks of
    authors said, cost steps and alter nothing. The walk ends where all that is left is older than all of them.
    """
    found = {commit: 1 << place for place, commit in enumerate(dict.fromkeys(commits))}
    whole = (1 << len(found)) - 1
    queue = [_queued(repository, commit) for commit in found]
    heapq.heapify(queue)
    waiting = {commit for commit in found if found[commit] != whole}  # in the queue, and not older than all
    steps = 0
    while waiting and steps < _WALKED_MAX:
        *_, commit, parents = heapq.heappop(queue)
        waiting.discard(commit)
        for parent in parents:
            steps += 1
            bits = found.get(parent, 0) | found[commit]
            if bits != found.get(parent, 0):
                found[parent] = bits
                heapq.heappush(queue, _queued(repository, parent))
                (waiting.discard if bits == whole else waiting.add)(parent)
    return found


def _queued(repository: Any, oid: Any) -> tuple[int, str, Any, Any]:
    """Return a commit as walks keep it, those first that were made last: its time, name, id and parents."""
    try:
        commit = commit_at(repository, oid)
    except KeyError:  # as beyond the end of a shallow clone
        return 0, str(oid), oid, ()
    return -commit.commit_time, str(oid), oid, commit.parent_ids


def newest_first(repository: Any, commit: str) -> Iterator[Any]:
    """Yield a commit and those before it, the newest first as their times tell.

    Raises:
        StoreError: one is too large, or none.
    """
    head = pygit2.Oid(hex=commit)
    seen, queue = {head}, [_queued(repository, head)]
    while queue and len(seen) <= _WALKED_MAX:
        *_, oid, parents = heapq.heappop(queue)
        yield repository[oid]
        for parent in parents:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(queue, _queued(repository, parent))
