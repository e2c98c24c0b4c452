"""A tool in a process that holds it: no network, an empty environment, a home of its own, limits of everything."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconciler.errors import ReconcilerError

_CHILD: Final = Path(__file__).with_name("contained_child.py")
_CLOCKS: Final = (("east", 13 * 3600 + 41 * 60 + 17), ("west", -(11 * 3600 + 27 * 60 + 13)))
"""Local time of the first and the second run: no hour, minute and second of both are the same, nor often the day."""
_LANDLOCK: Final = 444
"""landlock_create_ruleset, the same on all machines."""
_HOSTS: Final = ("render-a", "render-b")


class Limits(NamedTuple):
    """What one run of a tool may use. `processes`: threads count among them."""

    cpu_s: int = 120
    wall_s: float = 180.0
    memory_bytes: int = 4 * 2**30
    """Of address space, of which a Go program reserves more than it uses: kubectl starts with 2 GiB, not with 1."""
    file_bytes: int = 16 * 2**20
    processes: int = 512
    processes_of_user: int = 8192
    """In place of `processes` where all processes of the user count."""


class RenderFailed(ReconcilerError):
    """A tool refused its inputs, or took more than its limits."""


class NotContained(ReconcilerError):
    """This machine allows no process without network."""


def render_twice(
    commands: Sequence[Sequence[str]],
    folder: Path,
    *,
    allow_network: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - a value
    readable: Sequence[Path] = (),
) -> list[tuple[bytes, bytes]]:
    """What each command wrote, twice: with another home, local time and host name, and in another second.

    One process is started, which runs the commands one after another, and no more of them after one that fails.
    `folder`: a folder of our own with the inputs, where homes and outputs go. Of other files a tool sees those of the
    system that programs need to run, and `readable`; where the kernel cannot hide files it sees all (`hides_files`).

    Raises:
        NotContained: there is a network, and `allow_network` is not given.
        RenderFailed: a command failed; the message has the end of what it said.
    """
    runs = [_run(command, folder, number, side) for side in (0, 1) for number, command in enumerate(commands)]
    # Whoever writes the second into an output writes another one the second time.
    runs[len(commands)]["in_next_second"] = True
    found = _outputs(runs, folder, allow_network=allow_network, limits=limits, readable=readable)
    return list(zip(found[: len(commands)], found[len(commands) :], strict=True))


def hides_files() -> bool:
    """Whether this kernel can hide files from a tool. Source: landlock(7)."""
    return bool(ctypes.CDLL(None).syscall(_LANDLOCK, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) > 0)


def run_once(command: Sequence[str], folder: Path, *, environ: Mapping[str, str], allow_network: bool) -> bytes:
    """What one command wrote. `environ`: what it is told beside the usual. No files are hidden from it.

    Raises:
        NotContained, RenderFailed: as of `render_twice`.
    """
    run = _run(command, folder, 0, 0)
    run["env"] |= environ
    return _outputs([run], folder, allow_network=allow_network, limits=Limits(file_bytes=64 * 2**20), readable=None)[0]


def _outputs(
    runs: list[dict[str, Any]], folder: Path, *, allow_network: bool, limits: Limits, readable: Sequence[Path] | None
) -> list[bytes]:
    """`readable`: None: no files are hidden."""
    hidden = {
        "writable": None if readable is None else [str(folder)],
        "readable": [str(path) for path in readable or ()],
    }
    answer = _ask(runs, folder, allow_network=allow_network, limits=limits, hidden=hidden)
    if "refused" in answer:
        raise NotContained(
            f"no process without network can be started here ({answer['refused']}); allow user namespaces, or give "
            "--allow-network if you trust every chart and base of this store"
        )
    for run, code in zip(runs, answer["codes"], strict=False):
        if code != 0:
            raise RenderFailed(_complaint(run, code, limits))
    return [Path(run["out"]).read_bytes() for run in runs]


def _run(command: Sequence[str], folder: Path, number: int, side: int) -> dict[str, Any]:
    home = folder / f"home-{number}-{side}"
    for name in ("", "cache", "config", "data", "plugins", "tmp"):
        (home / name).mkdir(mode=0o700)
    zone = home / _CLOCKS[side][0]
    zone.write_bytes(_zone(_CLOCKS[side][1]))
    env = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "TZ": str(zone),
        "LC_ALL": "C",
        "KUBECONFIG": "/dev/null",
        "KUBERC": "off",
        "HELM_NO_PLUGINS": "1",
        "HELM_PLUGINS": str(home / "plugins"),
        "HELM_CACHE_HOME": str(home / "cache"),
        "HELM_CONFIG_HOME": str(home / "config"),
        "HELM_DATA_HOME": str(home / "data"),
    }
    out, err = folder / f"out-{number}-{side}", folder / f"err-{number}-{side}"
    return {
        "argv": list(command), "env": env, "cwd": str(home / "tmp"), "out": str(out), "err": str(err),
        "host": _HOSTS[side], "in_next_second": False,
    }  # fmt: skip


def _zone(offset_s: int) -> bytes:
    """A time zone file of one offset for ever. Source: RFC 9636, version 1."""
    header = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    return header + struct.pack(">lBB", offset_s, 0, 0) + b"XXX\0"


def _ask(
    runs: list[dict[str, Any]], folder: Path, *, allow_network: bool, limits: Limits, hidden: dict[str, Any]
) -> dict[str, Any]:
    if allow_network:
        runs = [{**run, "host": ""} for run in runs]  # The name would be that of the whole machine.
    request = {
        **hidden,
        "runs": runs,
        "network": allow_network,
        "cpu_s": limits.cpu_s,
        "wall_s": limits.wall_s,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "processes": limits.processes_of_user if allow_network else limits.processes,
    }
    with subprocess.Popen(  # noqa: S603 - this interpreter, and a script of ours
        [sys.executable, "-I", "-S", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"LC_ALL": "C.UTF-8"},
        cwd=folder,
        start_new_session=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            # It stays open: its end tells the process that this one is gone.
            child.stdin.write(f"{json.dumps(request)}\n".encode())
            child.stdin.flush()
            line = child.stdout.readline()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        if not line:
            raise RenderFailed(f"the process that holds the tool ended: {child.stderr.read(2000).decode()}")
    answer: dict[str, Any] = json.loads(line)
    return answer


_SAID_BYTES: Final = 4000


def _complaint(run: dict[str, Any], code: int | None, limits: Limits) -> str:
    """Why a run failed, without the folders that nobody knows."""
    if code is None:
        return f"it did not end within {limits.wall_s:.0f} s"
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it was ended: it took more than {limits.cpu_s} s of processor time, or more memory than there is"
    if code == -signal.SIGXFSZ:
        return f"it wrote more than {limits.file_bytes:,} bytes"
    said = Path(run["err"]).read_bytes()[-_SAID_BYTES:].decode(errors="replace")
    if Path(run["out"]).stat().st_size >= limits.file_bytes:
        return f"it wrote more than {limits.file_bytes:,} bytes"
    return " ".join(said.split()) or f"it ended with {code}"
