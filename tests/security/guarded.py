"""A command line under watch, in a process of its own: what it started, whom it called, what it cost.

An audit hook sees every process that is started and every connection that is opened, in C code and in Python alike.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

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


def watch(report: str, arguments: list[str]) -> NoReturn:
    """Run `reconciler ARGUMENT…`, write a JSON report into a file when it ends, and exit with its code."""
    events: list[str] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in WATCHED:
            events.append(f"{event} {arguments[:2]!r}"[:300])

    from reconciler.cli.main import main as command  # noqa: PLC0415 - the server of `tests.program` has imported it

    os.environ.setdefault("COLUMNS", "200")
    sys.addaudithook(note)
    started_s = time.process_time()
    try:
        command(arguments)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    finally:
        status = Path("/proc/self/status").read_text()
        peak_kb = int(status.partition("VmHWM:")[2].split()[0])
        Path(report).write_text(
            json.dumps({"events": events, "cpu_s": time.process_time() - started_s, "peak_mb": peak_kb / 1024})
        )
    sys.stdout.flush()
    sys.exit(code)
