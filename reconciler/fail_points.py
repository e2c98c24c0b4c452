"""Numbered points before and after everything that outlives the process: commits of the journal, writes to members.

Tests set `RECONCILER_FAIL_POINT=N` to make the process kill itself, as `kill -9` would, at the Nth point that it
reaches, or the name of a point for the first one of that name, and `RECONCILER_FAIL_POINT_LOG=FILE` to have the names
of the points written down. Otherwise a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_kill_at = os.environ.get("RECONCILER_FAIL_POINT") or ""
_log = os.environ.get("RECONCILER_FAIL_POINT_LOG") or ""
_is_armed = bool(_kill_at or _log)
_reached = 0


def reach(name: str) -> None:
    """Nothing, or the end of the process when it is this point's turn."""
    if _is_armed:
        _count(name)


def _count(name: str) -> None:
    global _reached  # noqa: PLW0603 - the process is what is counted
    _reached += 1
    if _log:
        with Path(_log).open("a", encoding="utf-8") as log:
            log.write(f"{_reached} {name}\n")
    if _kill_at in (str(_reached), name):
        os.kill(os.getpid(), signal.SIGKILL)
