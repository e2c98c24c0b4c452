"""Asking a server over SSH with git and OpenSSH, where they are installed.

Nothing of this machine's or its user's configuration takes part: no file of git or ssh, no agent, no hook, no helper.
Nothing is asked of a person. Git may start ssh alone, and ssh connects to the host of the URL alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reconciler.adapters.git.child.heads import Head
from reconciler.adapters.git.child.over_libgit2 import MAX_BYTES
from reconciler.adapters.git.child.refusals import Refused
from reconciler.adapters.git.child.ssh_faults import fault_of

CONNECT_S: Final = 20
SILENCE_S: Final = 60
_LOOK_S: Final = 1.0
_HAND_OUT_S: Final = 0.1
_TAIL_BYTES: Final = 8 * 1024
_HEADS_BYTES: Final = 256 * 2**20
_ASKPASS: Final = """#!/bin/sh
case $1 in *assphrase*) IFS= read -r answer <"$FLEET_PASSPHRASE" && printf '%s\\n' "$answer" ;; esac
"""
"""How ssh learns a passphrase: it asks a program, which reads it from a pipe. No file and no environment holds it."""

_NAME: Final = r"(HEAD|refs/[^\x00-\x20\x7f:?*\[\\^~]{1,1000})"
_HEAD: Final = re.compile(rf"(?m)^([0-9a-f]{{40}})\t{_NAME}$")
_TARGET: Final = re.compile(rf"(?m)^ref: {_NAME}\t(HEAD)$")

_GIT_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.askPass=",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "fetch.showForcedUpdates=false",
    "transfer.bundleURI=false",
    # Always a pack, never loose files; which packs are joined is ours to say.
    "fetch.unpackLimit=1",
    "transfer.unpackLimit=1",
    "gc.auto=0",
    "maintenance.auto=false",
    # Bounds of memory, whatever comes.
    "pack.threads=1",
    "pack.windowMemory=16m",
    "pack.writeReverseIndex=false",
    "core.deltaBaseCacheLimit=16m",
    "core.bigFileThreshold=4m",
    "core.packedGitWindowSize=4m",
    "core.packedGitLimit=64m",
)


def is_openssh(request: Mapping[str, Any]) -> bool:
    """Whether git is there, and an ssh that is OpenSSH: other ones take other options."""
    if not request["git"] or not request["ssh"]:
        return False
    try:
        told = subprocess.run(  # noqa: S603
            [request["ssh"], "-V"], check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=CONNECT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.stderr.startswith(b"OpenSSH")


def ssh_options(request: Mapping[str, Any], home: Path) -> list[str]:
    """The arguments of ssh: only the key that was given, only hosts that were vouched for, and nothing is asked."""
    options = {
        # A passphrase is asked for by the program of ours alone; without one, nothing ever is.
        "BatchMode": "no" if request["passphrase"] else "yes",
        "NumberOfPasswordPrompts": "1",
        "PreferredAuthentications": "publickey",
        "PubkeyAuthentication": "yes",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "HostbasedAuthentication": "no",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "IdentityFile": _quoted(request["key"]) if request["key"] else "none",
        "AddKeysToAgent": "no",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": _quoted(str(home / "known_hosts")),
        "GlobalKnownHostsFile": "/dev/null",
        "UpdateHostKeys": "no",
        "VerifyHostKeyDNS": "no",
        "CheckHostIP": "no",
        "CanonicalizeHostname": "no",
        "ProxyCommand": "none",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "Tunnel": "no",
        "EscapeChar": "none",
        "ConnectTimeout": str(CONNECT_S),
        "ConnectionAttempts": "1",
        "ServerAliveInterval": str(SILENCE_S // 4),
        "ServerAliveCountMax": "4",
        "LogLevel": "ERROR",
    }
    pairs = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return ["-F", "/dev/null", "-E", str(home / "ssh.log"), "-T", *pairs]


def _quoted(path: str) -> str:
    """As the parser of ssh takes a path: a percent sign would be a token, a blank an end.

    Raises:
        Refused: it has a character that the parser has no way to write.
    """
    if any(part in path for part in ('"', "\\", "\n", "${")):
        raise Refused(
            "credentials", f"{path}: OpenSSH takes no path with a quotation mark, backslash or ${{; rename it"
        )
    return '"' + path.replace("%", "%%") + '"'


class OverOpenSsh:
    """One server, for one request."""

    def __init__(self, request: Mapping[str, Any], tell: Callable[[int, int], None]) -> None:
        """Write what ssh reads into the empty home."""
        self._request = request
        self._tell = tell
        self._folder = Path(request["folder"])
        self._home = Path(request["home"])
        self._log = self._home / "ssh.log"
        (self._home / "known_hosts").write_text(request["known_hosts"] + "\n")
        ssh = [request["ssh"], *ssh_options(request, self._home)]
        self._environment = {
            "HOME": str(self._home),
            "XDG_CONFIG_HOME": str(self._home),
            "TMPDIR": str(self._home),
            "LC_ALL": "C",
            "PATH": os.pathsep.join((str(Path(request["git"]).parent), os.defpath)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "ssh",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_SSH_COMMAND": shlex.join(ssh),
            "GIT_SSH_VARIANT": "ssh",
            **self._asking(),
        }

    def heads(self) -> dict[str, Head]:
        """The references of the server."""
        listed = self._run("ls-remote", "--symref", "--", self._request["url"]).decode(errors="surrogateescape")
        targets = {name: target for target, name in _TARGET.findall(listed)}
        # What a server names otherwise could be read as more than a name, and is passed over.
        return {name: Head(oid, targets.get(name, "")) for oid, name in _HEAD.findall(listed)}

    def bring(self, specs: Sequence[str]) -> None:
        """Write references of the server, and all that they lead to, into the clone."""
        told = ("--progress", "--no-tags", "--no-recurse-submodules", "--refmap=")
        self._run("fetch", *told, "--", self._request["url"], *specs)

    def _run(self, command: str, *arguments: str) -> bytes:
        """What a command of git prints.

        Raises:
            Refused: it failed.
        """
        settings = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
        line = [self._request["git"], *settings, f"--git-dir={self._folder}", command, *arguments]
        with subprocess.Popen(  # noqa: S603
            line,
            cwd=self._home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                output, said = self._followed(process)
                code = process.wait()
            finally:
                process.kill()
        if code:
            raise fault_of(self._request, _tail(self._log), said, self._environment)
        return output

    def _followed(self, process: subprocess.Popen[bytes]) -> tuple[bytes, str]:
        """What the process prints, and the end of what it says; told on while something moves."""
        parts: dict[str, bytearray] = {"output": bytearray(), "said": bytearray()}
        counted = received_bytes = 0
        with selectors.DefaultSelector() as selector:
            for name, stream in (("output", process.stdout), ("said", process.stderr)):
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, name)
            while selector.get_map():
                has_ended = process.poll() is not None
                ready = selector.select(_LOOK_S)
                # An ssh that its server keeps waiting may outlive git, and holds what git said through.
                if has_ended and not ready:
                    break
                for key, _ in ready:
                    counted += self._take(key.fileobj, parts[key.data], selector)
                if len(parts["output"]) > _HEADS_BYTES:
                    raise Refused("too-big", "the repository has more branches and tags than can be looked through")
                del parts["said"][:-_TAIL_BYTES]
                received_bytes = max(received_bytes, self._received_bytes() + len(parts["output"]))
                self._tell(received_bytes, counted)
        return bytes(parts["output"]), parts["said"].decode(errors="replace")

    @staticmethod
    def _take(stream: Any, part: bytearray, selector: selectors.BaseSelector) -> int:
        """Read what is there; how many lines of progress that were."""
        data = os.read(stream.fileno(), 65536)
        if not data:
            selector.unregister(stream)
        part += data
        return data.count(b"\r") + data.count(b"\n")

    def _received_bytes(self) -> int:
        """How much of a pack has come."""
        size = 0
        for pack in (self._folder / "objects/pack").glob("tmp_pack_*"):
            with contextlib.suppress(FileNotFoundError):
                size += pack.stat().st_size
        if size > MAX_BYTES:
            raise Refused("too-big", f"the repository is bigger than {MAX_BYTES:,} bytes")
        return size

    def _asking(self) -> dict[str, str]:
        """The environment by which ssh learns the passphrase; without one it asks nobody."""
        if not self._request["passphrase"]:
            return {"SSH_ASKPASS_REQUIRE": "never"}
        pipe = self._home / "passphrase"
        os.mkfifo(pipe, 0o600)
        line = self._request["passphrase"].splitlines()[0].encode() + b"\n"
        threading.Thread(target=_hand_out, args=(pipe, line), daemon=True).start()
        # Before OpenSSH 8.4 the program is asked where there is a display and no terminal.
        return {
            "SSH_ASKPASS": str(self._program()),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": "none",
            "FLEET_PASSPHRASE": str(pipe),
        }

    def _program(self) -> Path:
        """The program that answers, in a folder where programs may be run: those for passing files often forbid it."""
        for folder in (self._home, self._folder.parent):
            if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
                return _written(folder / "askpass")
        where = f"{self._home.parent} and {self._folder.parent}"
        raise Refused("credentials", f"the SSH key has a passphrase, and no program may be run in {where} to give it")


def _written(program: Path) -> Path:
    if not program.exists() or program.read_text() != _ASKPASS:
        made = program.with_name(f"{program.name}-{os.getpid()}")
        made.write_text(_ASKPASS)
        made.chmod(stat.S_IRWXU)
        made.rename(program)
    return program


def _hand_out(pipe: Path, line: bytes) -> None:
    """Write the line to each reader; what waits for one ends with its process."""
    while _is_there(pipe):
        with contextlib.suppress(OSError):
            # Only what is there: a pipe that was taken away meanwhile must not come back as a file with the passphrase.
            descriptor = os.open(pipe, os.O_WRONLY)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        # The reader takes one line and goes; without a pause it would be met again.
        time.sleep(_HAND_OUT_S)


def _is_there(pipe: Path) -> bool:
    try:
        return pipe.exists()
    except OSError:  # Its folder is closed to us by now: nobody reads there any more.
        return False


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
