"""A worker that is killed leaves no process behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.real_clusters import wait_until

WORKER = """
import subprocess, time
from tests.leftovers import end_together
reaper = end_together()
daemon = subprocess.Popen(["sleep", "1000"])
print(daemon.pid, flush=True)
time.sleep(1000)
"""


def test_what_a_killed_worker_started_ends() -> None:
    root = Path(__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", WORKER], stdout=subprocess.PIPE, text=True, cwd=root) as worker:
        assert worker.stdout is not None
        try:
            daemon = Path("/proc", worker.stdout.readline().strip(), "cmdline")
            # While a process becomes another program, it has no command line.
            wait_until(lambda: b"sleep" in daemon.read_bytes(), "the daemon to begin")
        finally:
            worker.kill()
    wait_until(lambda: not daemon.exists() or daemon.read_bytes() == b"", "the daemon to end")
