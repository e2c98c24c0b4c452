"""Runs a tool several times, contained: a request on stdin, an answer on stdout, both a line of JSON.

It imports nothing of ours, and runs with `python -I -S`. It enters namespaces before any tool starts, so that no tool
ever has a network. Its parent keeps stdin open; when that ends, so does this process with all that it started.

It hides the file system from each tool, where the kernel knows how (Landlock, Linux 5.13): what is left is what the
request names, what programs of the system need to run, and no process to signal.

Request: `runs` (each with `argv`, `env`, `cwd`, `out`, `err`, `host`, `in_next_second`), `network` (whether it may be
had), `cpu_s`, `wall_s`, `memory_bytes`, `file_bytes`, `processes`, `writable` (folders) and `readable`
(files and folders); null: nothing is hidden.
Answer: `codes` (of each run; null: it took too long), or `refused` with the reason for which nothing was run.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_NEWUSER, _NEWNET, _NEWUTS, _NEWIPC = 0x10000000, 0x40000000, 0x04000000, 0x08000000
_SET_NO_NEW_PRIVS, _SET_PDEATHSIG = 38, 1
_MARGIN_S = 0.01
_LIBC = ctypes.CDLL(None, use_errno=True)

_CREATE_RULESET = 444
_ADD_RULE, _RESTRICT_SELF = 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_RIGHTS_UNTIL = ((5, 16), (3, 15), (2, 14), (1, 13))
"""From which version of Landlock on how many rights are known. Source: linux/landlock.h."""
_SCOPED = 0b11
"""No signal and no abstract socket leads out."""
_SCOPES_FROM = 6
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/alternatives"
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def leave_network() -> str:
    """Enter namespaces without a network; the reason when that is not allowed. What is there then is looked at."""
    net = Path("/proc/self/ns/net")
    before = str(net.readlink()) if net.exists() else ""
    for flags in (_NEWUSER | _NEWNET | _NEWUTS | _NEWIPC, _NEWNET | _NEWUTS | _NEWIPC):
        if _LIBC.unshare(flags) == 0:
            break
    else:
        return os.strerror(ctypes.get_errno())
    names = [name for _, name in socket.if_nameindex()]
    if not before or str(net.readlink()) == before or names not in ([], ["lo"]):
        return f"the network is still there: {', '.join(names)}"
    return ""


def landlock_version() -> int:
    """What the kernel knows of Landlock; 0: nothing."""
    found: int = _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(found, 0)


def hide_files(request: dict[str, Any], program: str) -> None:
    """Leave the tool what it needs of the file system; called in its process before it starts.

    Raises:
        OSError: the kernel knows how, and did not.
    """
    version = landlock_version()
    if version == 0 or request["writable"] is None:
        return
    rights = (1 << next(count for least, count in _RIGHTS_UNTIL if version >= least)) - 1
    is_scoped = version >= _SCOPES_FROM
    attributes = (ctypes.c_uint64 * 3)(rights, 0, _SCOPED if is_scoped else 0)
    size = ctypes.sizeof(attributes) if is_scoped else ctypes.sizeof(ctypes.c_uint64)
    ruleset = _checked(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    read = _EXECUTE | _READ_FILE | _READ_DIR
    granted = [(path, rights) for path in request["writable"]]
    granted += [(path, read) for path in (*_SYSTEM, *request["readable"], program)]
    granted += [(path, _READ_FILE | _WRITE_FILE) for path in _DEVICES]
    for path, allowed in granted:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        mask = rights & allowed if Path(path).is_dir() else rights & allowed & _OF_FILES
        rule = struct.pack("=Qi", mask, opened)
        _checked(_LIBC.syscall(_ADD_RULE, ruleset, ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)))
        os.close(opened)
    _checked(_LIBC.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)


def _checked(found: int) -> int:
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def begin(request: dict[str, Any], program: str) -> None:
    """In the process of the tool, before it starts."""
    limit(request)
    hide_files(request, program)


def limit(request: dict[str, Any]) -> None:
    """What the tool may use; called in its process before it starts."""
    for what, most in (
        (resource.RLIMIT_CPU, request["cpu_s"]),
        (resource.RLIMIT_AS, request["memory_bytes"]),
        (resource.RLIMIT_FSIZE, request["file_bytes"]),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_once(run: dict[str, Any], request: dict[str, Any]) -> int | None:
    """The exit code of a run; None when it took too long and was ended."""
    if run["in_next_second"]:
        time.sleep(1.0 - time.time() % 1.0 + _MARGIN_S)
    if run["host"]:
        socket.sethostname(run["host"])
    with Path(run["out"]).open("wb") as out, Path(run["err"]).open("wb") as err:
        tool = subprocess.Popen(  # noqa: S603 - a fixed program with fixed options
            run["argv"],
            env=run["env"],
            cwd=run["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=lambda: begin(request, run["argv"][0]),  # noqa: PLW1509 - the only other thread waits for stdin
        )
        try:
            return tool.wait(request["wall_s"])
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.wait()
            return None


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """What came of the runs, in order; those after one that failed are left out."""
    if not request["network"]:
        reason = leave_network()
        if reason:
            return {"refused": reason}
    # Namespaces of a user are entered by a process with one thread, so that the watch begins after that.
    threading.Thread(target=end_with_parent, daemon=True).start()
    codes: list[int | None] = []
    for run in request["runs"]:
        codes.append(run_once(run, request))
        if codes[-1] != 0:
            break
    return {"codes": codes}


def end_with_parent() -> None:
    """End all at once when the parent is gone."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """One request, one answer."""
    request = json.loads(sys.stdin.readline())
    sys.stdout.write(f"{json.dumps(answer_to(request))}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
