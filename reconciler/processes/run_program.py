"""Run a program of others: with an environment that is given whole, limits of all that it uses, and no child left."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

_HOLDER: Final = Path(__file__).with_name("holder.py")
_LANDLOCK: Final = 444
"""landlock_create_ruleset, the same on all machines."""
_CHUNK_BYTES: Final = 65_536
_CHECK_S: Final = 0.1
_END_S: Final = 10.0


class Limits(NamedTuple):
    """Resource limits of a run. `silence_s`: the time without a sign of life for `hear`.

    `memory_bytes`: of address space, of which a Go program reserves more than it uses: kubectl starts with 2 GiB, not
    with 1. `file_bytes`: of each file that it writes. `processes`: threads count among them; None: any number.
    """

    wall_s: float
    cpu_s: int
    memory_bytes: int = 4 * 2**30
    file_bytes: int = 2**20
    output_bytes: int = 16 * 2**20
    error_bytes: int = 2**20
    silence_s: float = math.inf
    processes: int | None = None


class Command(NamedTuple):
    """A command to run. `argv`: its first is an absolute path. `folder`: its working directory. `data`: for its stdin.

    `host`: the name of the machine that it sees; only without a network. `writable`, `readable`: all files that it
    sees, beside what programs of the system need to run; None: none is hidden.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    folder: str
    data: bytes = b""
    has_network: bool = True
    host: str = ""
    writable: Sequence[str] | None = None
    readable: Sequence[str] = ()


class Exited(NamedTuple):
    """It ended by itself. `code`: of its exit; negative: the signal that ended it."""

    code: int
    output: bytes
    error: bytes


class Termination(StrEnum):
    """The reason why a program did not end by itself."""

    LATE = "late"
    SILENT = "silent"
    FLOODING = "flooding"
    """It wrote more than it may."""
    STOPPED = "stopped"
    NOT_STARTED = "not started"
    NO_SANDBOX = "no sandbox"
    """This machine allows no process without network, so that nothing was run."""
    LOST = "lost"
    """Something else has ended what holds it."""


class Terminated(NamedTuple):
    """It was ended, or not started. `detail`: what the system says of it."""

    reason: Termination
    detail: str = ""


def hides_files() -> bool:
    """Return whether this kernel can hide files from a program. Source: landlock(7)."""
    import ctypes  # noqa: PLC0415 - opens a library, which a command that starts no program has no need of

    return bool(ctypes.CDLL(None).syscall(_LANDLOCK, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) > 0)


def run(
    command: Command,
    limits: Limits,
    *,
    hear: Callable[[bytes], bool] = lambda _: True,
    stop: threading.Event | None = None,
    held: Sequence[int] = (),
) -> Exited | Terminated:
    """Run it to its end; nothing that it started is left then, nor when this process ends before, however that ends.

    Args:
        command: what is run.
        limits: what it may use.
        hear: called with each part of its stderr; whether that is a sign of life.
        stop: set from another thread, it ends the program.
        held: file descriptors that stay open until the last of its processes has ended, such as that of a lock.
    """
    read, write = os.pipe()
    try:
        holder = subprocess.Popen(  # noqa: S603 - this interpreter, and a script of ours
            [sys.executable, "-I", "-S", str(_HOLDER), *map(str, (write, *held))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
            pass_fds=(write, *held),
            start_new_session=True,
        )
    except OSError as error:
        os.close(read)
        return Terminated(Termination.NOT_STARTED, error.strerror or "")
    finally:
        os.close(write)
    with holder, os.fdopen(read, "rb", buffering=0) as answer:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            holder.stdin.write(_request(command, limits))
            # It stays open: its end shows the holder that this process is gone.
            holder.stdin.flush()
        streams = {answer: bytearray(), holder.stdout: bytearray(), holder.stderr: bytearray()}
        try:
            reason = _follow(streams, [_CHUNK_BYTES, limits.output_bytes, limits.error_bytes], limits, hear, stop)
        finally:
            _end(holder)
    if reason is not None:
        return Terminated(reason)
    report, output, stderr = map(bytes, streams.values())
    return _result(json.loads(report) if report else {}, output, stderr)


def _request(command: Command, limits: Limits) -> bytes:
    request = {
        "argv": list(command.argv),
        "environ": dict(command.environ),
        "folder": command.folder,
        "network": command.has_network,
        "host": command.host,
        "writable": None if command.writable is None else list(command.writable),
        "readable": list(command.readable),
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "processes": limits.processes,
        "input_bytes": len(command.data),
    }
    return json.dumps(request).encode() + b"\n" + command.data


def _follow(
    streams: Mapping[Any, bytearray],
    most_bytes: Sequence[int],
    limits: Limits,
    hear: Callable[[bytes], bool],
    stop: threading.Event | None,
) -> Termination | None:
    """Read the streams (answer, stdout, stderr) to their ends; the reason where that was given up."""
    now_s = time.monotonic()
    until_s, silent_s = now_s + limits.wall_s, now_s + limits.silence_s
    with selectors.DefaultSelector() as selector:
        for one, most in zip(streams, most_bytes, strict=True):
            selector.register(one, selectors.EVENT_READ, most)
        error = list(streams)[-1]
        while selector.get_map():
            left_s = min(until_s, silent_s) - time.monotonic()
            if left_s <= 0:
                return Termination.LATE if until_s <= silent_s else Termination.SILENT
            if stop is not None and stop.is_set():
                return Termination.STOPPED
            for key, _ in selector.select(left_s if stop is None else min(left_s, _CHECK_S)):
                stream: Any = key.fileobj
                part = os.read(stream.fileno(), _CHUNK_BYTES)
                if not part:
                    selector.unregister(stream)
                elif len(streams[stream]) + len(part) > key.data:
                    return Termination.FLOODING
                streams[stream].extend(part)
                if part and (stream is not error or hear(part)):
                    silent_s = time.monotonic() + limits.silence_s
    return None


def _end(holder: subprocess.Popen[bytes]) -> None:
    """End the holder, which ends all that it started; one that does not is ended with its group."""
    assert holder.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        holder.stdin.close()
    try:
        holder.wait(_END_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(holder.pid, signal.SIGKILL)


def _result(answer: Mapping[str, Any], output: bytes, error: bytes) -> Exited | Terminated:
    if "code" in answer:
        return Exited(answer["code"], output, error)
    if "refused" in answer:
        return Terminated(Termination.NO_SANDBOX, answer["refused"])
    if "failed" in answer:
        return Terminated(Termination.NOT_STARTED, answer["failed"])
    return Terminated(Termination.LOST, " ".join(error.decode(errors="replace").split())[-200:])
