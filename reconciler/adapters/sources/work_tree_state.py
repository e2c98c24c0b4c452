"""Whether what is checked out in a work tree is meant: in the middle of a rebase, HEAD is a commit that nobody wants.

Source: Git, `wt-status.c` (`wt_status_get_state`): the files that tell of an operation that is under way.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reconciler.adapters.git.snapshot import GitStore
from reconciler.adapters.sources.location import StoreLocation
from reconciler.errors import StoreUnsettled

_OPERATIONS: Final = (
    ("rebase-apply/applying", "a git am"),
    ("rebase-apply", "a rebase"),
    ("rebase-merge", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert of several commits"),
    ("BISECT_LOG", "a bisect"),
)


def operation(store: GitStore) -> str:
    """What is under way in a work tree, and since when, for people; empty: nothing."""
    for name, words in _OPERATIONS:
        try:
            changed_s = (store.folder / name).stat().st_mtime
        except OSError:
            continue
        since = datetime.fromtimestamp(changed_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{words} has been under way since {since}"
    return ""


def refuse_operation(location: StoreLocation, store: GitStore) -> None:
    """Nothing, when nothing is under way. A detached HEAD is what a checkout of a pipeline has.

    Raises:
        StoreUnsettled: a rebase, merge or the like is.
    """
    found = operation(store)
    if found:
        raise StoreUnsettled(f"{location}: {found}; finish it, or give --rev HEAD to mean what is checked out now")


def refuse_unsettled(location: StoreLocation, store: GitStore) -> None:
    """Nothing, when a branch is checked out and nothing is under way: then HEAD is followed.

    A submodule and a linked work tree that a link leads to (git-sync) are detached by their nature.

    Raises:
        StoreUnsettled: HEAD is not to be followed; the message says what is waited for.
    """
    found, commit = operation(store), store.detached_at
    if found:
        head = f"HEAD is detached at {commit[:12]}: " if commit else ""
        raise StoreUnsettled(f"{location}: {head}{found}; waiting for its end (--rev HEAD follows what is checked out)")
    if commit and not _is_detached_by_nature(location, store):
        raise StoreUnsettled(
            f"{location}: HEAD is detached at {commit[:12]}; waiting for a branch to be checked out "
            "(--rev HEAD follows what is checked out)"
        )


def _is_detached_by_nature(location: StoreLocation, store: GitStore) -> bool:
    assert location.repository is not None, "only Git has a HEAD"
    if not (location.repository / ".git").is_file():
        return False
    if not (store.folder / "commondir").is_file():
        return True  # A submodule: its repository lies in that of its parent.
    return Path(os.path.abspath(location.path)) != Path(os.path.realpath(location.path))  # noqa: PTH100 - links as they are
