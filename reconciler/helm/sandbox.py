"""A tool in a process that holds it: no network, an empty environment, a home of its own, limits of everything."""

from __future__ import annotations

import re
import signal
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.errors import ReconcilerError
from reconciler.processes.run_program import Command, Exited, Limits, Terminated, Termination, run
from reconciler.regex import regex

_MARGIN_S: Final = 0.01
_PROCESSES_OF_USER: Final = 8192
"""In place of `Limits.processes` where all processes of the user count."""
_COMPLAINT_BYTES: Final = 4000
_TEMPORARY: Final = regex(r"/[^\s']{0,200}/fleet-render-\w+/(?:after/\d+|store)/", re.ASCII)

USUAL: Final = Limits(
    cpu_s=120, wall_s=180.0, file_bytes=16 * 2**20, output_bytes=16 * 2**20, error_bytes=16 * 2**20, processes=512
)


class _Side(NamedTuple):
    name: str
    offset_s: int
    host: str


_SIDES: Final = (
    _Side("east", 13 * 3600 + 41 * 60 + 17, "render-a"),
    _Side("west", -(11 * 3600 + 27 * 60 + 13), "render-b"),
)
"""No hour, minute and second of both local times are the same, nor often the day."""


class RenderFailed(ReconcilerError):
    """A tool refused its inputs, or took more than its limits."""


class NotContained(ReconcilerError):
    """This machine allows no process without network."""


def render_twice(
    commands: Sequence[Sequence[str]],
    folder: Path,
    *,
    allow_network: bool = False,
    limits: Limits = USUAL,
    readable: Sequence[Path] = (),
) -> list[tuple[bytes, bytes]]:
    """Return the output of each command, run twice: with another home, local time and host name, and in another second.

    They run one after another, and none after one that fails. `folder`: a folder of our own with the inputs, for the
    homes. Of other files a tool sees those of the system that programs need to run, and `readable`; if the kernel
    cannot hide files it sees all (`hides_files`).

    Raises:
        NotContained: there is a network, and `allow_network` is not given.
        RenderFailed: a command failed; the message has the end of what it said.
    """
    writable, visible = [str(folder)], [str(path) for path in readable]
    if allow_network:
        limits = limits._replace(processes=_PROCESSES_OF_USER)
    outputs: list[list[bytes]] = []
    for side in _SIDES:
        planned = [_command(argv, folder / f"home-{number}", side) for number, argv in enumerate(commands)]
        if outputs:
            # Whoever writes the second into an output writes another one the second time.
            time.sleep(1.0 - time.time() % 1.0 + _MARGIN_S)
        # With a network the name would be that of the whole machine.
        host = "" if allow_network else side.host
        ready = [
            command._replace(has_network=allow_network, host=host, writable=writable, readable=visible)
            for command in planned
        ]
        outputs.append([_output(command, limits) for command in ready])
    return list(zip(*outputs, strict=True))


def run_once(command: Sequence[str], folder: Path, *, environ: Mapping[str, str], allow_network: bool) -> bytes:
    """Return the output of one command. `environ`: added to the usual one. No files are hidden from it.

    Raises NotContained, RenderFailed: as of `render_twice`.
    """
    usual = _command(command, folder / "home", _SIDES[0])
    ready = usual._replace(environ={**usual.environ, **environ}, has_network=allow_network)
    processes = _PROCESSES_OF_USER if allow_network else USUAL.processes
    return _output(ready, USUAL._replace(file_bytes=64 * 2**20, output_bytes=64 * 2**20, processes=processes))


def _command(argv: Sequence[str], folder: Path, side: _Side) -> Command:
    home = folder.with_name(f"{folder.name}-{side.name}")
    for name in ("", "cache", "config", "data", "plugins", "tmp"):
        (home / name).mkdir(mode=0o700)
    zone = home / side.name
    # A time zone file of one offset for ever. Source: RFC 9636, version 1.
    header = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    zone.write_bytes(header + struct.pack(">lBB", side.offset_s, 0, 0) + b"XXX\0")
    environ = {
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
    return Command(argv, environ, str(home / "tmp"))


def _output(command: Command, limits: Limits) -> bytes:
    ran = run(command, limits)
    if isinstance(ran, Exited) and ran.code == 0:
        return ran.output
    if isinstance(ran, Terminated) and ran.reason is Termination.NO_SANDBOX:
        raise NotContained(
            f"no process without network can be started here ({ran.detail}); allow user namespaces, or give "
            "--allow-network if you trust every chart and base of this store"
        )
    raise RenderFailed(_complaint(ran, limits))


def _complaint(ran: Exited | Terminated, limits: Limits) -> str:
    """Return why a run failed, without the names of temporary folders."""
    too_much = f"it wrote more than {limits.output_bytes:,} bytes"
    if isinstance(ran, Terminated):
        return {
            Termination.LATE: f"it did not end within {limits.wall_s:.0f} s",
            Termination.FLOODING: too_much,
            Termination.LOST: f"the process that holds the tool ended: {ran.detail}",
        }.get(ran.reason, f"it cannot be started: {ran.detail}")
    if ran.code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"it was ended: it took more than {limits.cpu_s} s of processor time, or more memory than there is"
    if ran.code == -signal.SIGXFSZ:
        return too_much
    text = _TEMPORARY.sub("", ran.error[-_COMPLAINT_BYTES:].decode(errors="replace"))
    return " ".join(text.split()) or f"it ended with {ran.code}"
