"""Runs one program, held: a request on stdin, an answer on stdout. It imports nothing of ours: `python -I -S`.

Its parent keeps stdin open; when that ends, so does this process with all that it started. Nothing that the program
started is left when the answer is given, wherever it went: this process is who orphans are given to.

Request: a line of JSON (`argv`, `env`, `wall_s`, `cpu_s`, `memory_bytes`, `written_bytes`, `output_bytes`,
`error_bytes`, `input_bytes`), then so many bytes for its stdin.
Answer: a line of JSON (`code`: of its exit, null where it did not end by itself; `why`: `late`, `large`, or empty;
`output`, `error`: how many bytes follow of each), then these.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 36, 38
_LIBC = ctypes.CDLL(None, use_errno=True)
_CHUNK = 65_536
_MOST_ENDED = 100_000
"""So many processes are ended before it is given up: whoever forks faster than that is held by its limits alone."""


def limit(request: dict[str, Any]) -> None:
    """What the program may use; called in its process before it starts."""
    for what, most in (
        (resource.RLIMIT_CPU, request["cpu_s"]),
        (resource.RLIMIT_AS, request["memory_bytes"]),
        (resource.RLIMIT_FSIZE, request["written_bytes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def children() -> list[int]:
    """The processes that are ours to end, orphans of the program among them."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def end_all() -> None:
    """End every child, and the children that each leaves to us, until there is none."""
    for _ in range(_MOST_ENDED):
        alive = children()
        if not alive:
            return
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def taken(stream: IO[bytes], most: int, into: bytearray, full: threading.Event) -> None:
    """Read a stream to its end, or until there is more than may be."""
    while part := os.read(stream.fileno(), _CHUNK):
        if len(into) + len(part) > most:
            full.set()
            return
        into += part


def given(stream: IO[bytes], data: bytes) -> None:
    """Hand all of it over; a program may not want it."""
    with contextlib.suppress(OSError):
        stream.write(data)
    with contextlib.suppress(OSError):
        stream.close()


def run(request: dict[str, Any], data: bytes) -> tuple[int | None, str, bytes, bytes]:
    """The exit code or None, why it was ended, and what the program said on stdout and stderr."""
    output, error, full, more = bytearray(), bytearray(), threading.Event(), threading.Event()
    tool = subprocess.Popen(  # noqa: S603 - the program of the operator, with fixed options
        request["argv"],
        env=request["env"],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: limit(request),  # noqa: PLW1509 - no other thread runs yet
    )
    assert tool.stdin is not None
    assert tool.stdout is not None
    assert tool.stderr is not None
    threads = [
        threading.Thread(target=given, args=(tool.stdin, data), daemon=True),
        threading.Thread(target=taken, args=(tool.stdout, request["output_bytes"], output, full), daemon=True),
        threading.Thread(target=taken, args=(tool.stderr, request["error_bytes"], error, more), daemon=True),
    ]
    # Whoever has started it is watched from here on: before, a thread would have been copied into the program.
    threading.Thread(target=end_with_parent, daemon=True).start()
    for thread in threads:
        thread.start()
    until_s = time.monotonic() + request["wall_s"]
    why = ""
    while True:
        if full.is_set() or more.is_set():
            why = "large"
        elif time.monotonic() > until_s:
            why = "late"
        if why:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            tool.wait(0.05)
            break
    code = None if why else tool.returncode
    tool.kill()
    # Whoever holds its pipes besides is ended, so that they end.
    end_all()
    for thread in threads[1:]:
        thread.join()
    return code, "large" if full.is_set() or more.is_set() else why, bytes(output), bytes(error)


def end_with_parent() -> None:
    """End all at once when the parent is gone."""
    sys.stdin.buffer.read()
    end_all()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """One request, one answer."""
    _LIBC.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    request = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(request["input_bytes"])
    try:
        code, why, output, error = run(request, data)
    except OSError as failed:
        code, why, output, error = None, "", b"", (failed.strerror or "").encode()
    answer = {"code": code, "why": why, "output": len(output), "error": len(error)}
    sys.stdout.buffer.write(f"{json.dumps(answer)}\n".encode() + output + error)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
