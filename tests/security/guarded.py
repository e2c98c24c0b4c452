"""A command line under watch, run as a program of its own: what it started, whom it called, what it cost.

`guarded.py REPORT ARGUMENT…` runs `reconciler ARGUMENT…` and writes a JSON report when it ends. An audit hook sees
every process that is started and every connection that is opened, in C code and in Python alike.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

WATCHED = {
    "subprocess.Popen",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.spawn",
    "ctypes.dlopen",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "urllib.Request",
}


def main() -> int:
    """The exit code of the command."""
    report = Path(sys.argv[1])
    events: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WATCHED:
            events.append(f"{event} {arguments[:2]!r}"[:300])

    from reconciler.cli.main import main as command  # noqa: PLC0415 - the search path is set before

    sys.addaudithook(watch)
    started_s = time.process_time()
    try:
        command(sys.argv[2:])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    finally:
        status = Path("/proc/self/status").read_text()
        peak_kb = int(status.partition("VmHWM:")[2].split()[0])
        report.write_text(
            json.dumps({"events": events, "cpu_s": time.process_time() - started_s, "peak_mb": peak_kb / 1024})
        )
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.path.pop(0)
    os.environ.setdefault("COLUMNS", "200")
    sys.exit(main())
