"""Children end with their worker process, however it ends: pytest-xdist kills workers that do not end in time."""

from __future__ import annotations

import os
import subprocess

REAPER = 'cat >/dev/null; kill -KILL "-$1"'
"""Its standard input ends when its parent does."""


def end_together() -> subprocess.Popen[bytes]:
    """Begin a process group that ends with this process; keep the returned process until then."""
    os.setpgid(0, 0)
    return subprocess.Popen(
        ["sh", "-c", REAPER, "reaper", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
