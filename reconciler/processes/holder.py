"""Runs one program in bounds, and ends all its children. It imports nothing of ours: `python -I -S`.

A line of JSON on stdin is the request: the fields of `run_program.Command` and its `Limits`, and `input_bytes`, which
follow it for the program's stdin. The program writes to stdout and stderr of this process. The file descriptor that is
the first argument takes the answer: `code` of its exit, or `refused` or `failed` with the reason for which
nothing was run. The other arguments are file descriptors that stay open until this process ends.

The parent keeps stdin open; when that ends, so does this process, with all that it started, wherever that went: this
process is who orphans are given to.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 36, 38
_NEWUSER, _NEWNET, _NEWUTS, _NEWIPC = 0x10000000, 0x40000000, 0x04000000, 0x08000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_ENDING = threading.Lock()
"""Whoever ends the children: the one who waits for the program, or the one who hears that the parent is gone."""
_MOST_ENDED = 100_000
"""So often is looked before it is given up: whoever forks faster than that is held by its limits alone."""
_CHECK_S = 0.001
_TASKS = "/proc/self/task"

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
    before = _network()
    for flags in (_NEWUSER | _NEWNET | _NEWUTS | _NEWIPC, _NEWNET | _NEWUTS | _NEWIPC):
        if _LIBC.unshare(flags) == 0:
            break
    else:
        return os.strerror(ctypes.get_errno())
    names = [name for _, name in socket.if_nameindex()]
    if not before or _network() == before or names not in ([], ["lo"]):
        return f"the network is still there: {', '.join(names)}"
    return ""


def _network() -> str:
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115 - starts sooner
    except OSError:
        return ""


def hide_files(writable: list[str], readable: list[str]) -> None:
    """Leave the program the files that were named and those of the system that programs need (Landlock, Linux 5.13).

    Raises OSError: the kernel knows how, and did not.
    """
    version = _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    if version <= 0:
        return
    rights = (1 << next(count for least, count in _RIGHTS_UNTIL if version >= least)) - 1
    is_scoped = version >= _SCOPES_FROM
    attributes = (ctypes.c_uint64 * 3)(rights, 0, _SCOPED if is_scoped else 0)
    size = ctypes.sizeof(attributes) if is_scoped else ctypes.sizeof(ctypes.c_uint64)
    ruleset = _checked(_LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    granted = [(path, rights) for path in writable]
    granted += [(path, _EXECUTE | _READ_FILE | _READ_DIR) for path in (*_SYSTEM, *readable)]
    granted += [(path, _READ_FILE | _WRITE_FILE) for path in _DEVICES]
    for path, allowed in granted:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        mask = rights & allowed if os.path.isdir(path) else rights & allowed & _OF_FILES  # noqa: PTH112 - starts sooner
        rule = struct.pack("=Qi", mask, opened)
        _checked(_LIBC.syscall(_ADD_RULE, ruleset, ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)))
        os.close(opened)
    _checked(_LIBC.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)))
    os.close(ruleset)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def limit(request: dict[str, Any]) -> None:
    """Set what the program may use."""
    for what, most in (
        (resource.RLIMIT_CPU, request["cpu_s"]),
        (resource.RLIMIT_AS, request["memory_bytes"]),
        (resource.RLIMIT_FSIZE, request["file_bytes"]),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        if most is None:
            continue
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # A hardened service may not even ask (systemd, @resources), and has its own limit.
        with contextlib.suppress(PermissionError, ValueError):
            resource.setrlimit(what, (least, least))
    _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def start(request: dict[str, Any]) -> tuple[int, int]:
    """Start the program: its process, and where its stdin is written. Raises OSError: it cannot be started."""
    stdin_read, stdin_write = os.pipe()
    failure_read, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(stdin_read, 0)
            # What Python ignores stays ignored. SIGXFSZ does: a program tells of a write that failed, not of its death.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.chdir(request["folder"])
            limit(request)
            if request["writable"] is not None:
                hide_files(request["writable"], [*request["readable"], request["argv"][0]])
            os.execve(request["argv"][0], request["argv"], request["environ"])  # noqa: S606 - what this file is for
        except OSError as error:
            os.write(tell, (error.strerror or "").encode())
        finally:
            os._exit(127)
    os.close(stdin_read)
    os.close(tell)
    with os.fdopen(failure_read, "rb") as failure:
        fault = failure.read()
    if fault:
        os.waitpid(pid, 0)
        raise OSError(0, fault.decode())
    return pid, stdin_write


def give(stdin: int, data: bytes) -> None:
    """Hand all of it over; a program may not want it."""
    with contextlib.suppress(OSError), os.fdopen(stdin, "wb") as stream:
        stream.write(data)


def end_all() -> None:
    """End every child, and the children that each leaves to us, until there is none."""
    for _ in range(_MOST_ENDED):
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            # The list may leave out a child while another one ends, so that only this tells that there is none.
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if not os.path.exists(_TASKS):  # noqa: PTH110 - starts sooner
            return  # Nobody tells which they are: the group is ended in the end.
        time.sleep(_CHECK_S)


def children() -> list[int]:
    """The processes that are ours to end, orphans of the program among them."""
    pids: list[int] = []
    for task in os.listdir(_TASKS) if os.path.exists(_TASKS) else ():  # noqa: PTH208, PTH110 - starts sooner
        with contextlib.suppress(OSError), open(f"{_TASKS}/{task}/children") as file:  # noqa: PTH123
            pids += map(int, file.read().split())
    return pids


def end_with_parent() -> None:
    """End all at once when the parent is gone."""
    sys.stdin.buffer.read()
    with _ENDING:
        end_all()
        os.killpg(0, signal.SIGKILL)


def answer_to(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Run the program, and say what came of it."""
    if not request["network"]:
        reason = leave_network()
        if reason:
            return {"refused": reason}
    if request["host"]:
        socket.sethostname(request["host"])
    try:
        pid, stdin = start(request)
    except OSError as error:
        return {"failed": error.strerror or ""}
    # Threads begin here: namespaces of a user are entered by a process with one, and a fork copies none.
    threading.Thread(target=end_with_parent, daemon=True).start()
    threading.Thread(target=give, args=(stdin, data), daemon=True).start()
    # Left to be taken below: whoever hears that the parent is gone may end it meanwhile, and all else with it.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with _ENDING:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        end_all()
    return {"code": code}


def main() -> None:
    """One request, one answer."""
    os.umask(0o077)
    _LIBC.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for handed_over in map(int, sys.argv[1:]):
        os.set_inheritable(handed_over, False)
    request = json.loads(sys.stdin.buffer.readline())
    os.write(int(sys.argv[1]), json.dumps(answer_to(request, sys.stdin.buffer.read(request["input_bytes"]))).encode())
    if not os.path.exists(_TASKS):  # noqa: PTH110 - starts sooner
        os.killpg(0, signal.SIGKILL)
    # At once: the thread that reads stdin would be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
