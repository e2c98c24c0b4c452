"""One Git server, asked with `git`: what it is told of credentials, hosts and authorities, and what may be run.

Nothing of this machine's or its user's configuration takes part: no file of git or ssh, no agent, no hook, and no
helper but the one that the operator names. Nothing is asked of a person. Git may speak the URL's protocol alone.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.errors import StoreError
from reconciler.processes.run_program import Command, Exited, Limits, Terminated, Termination, run
from reconciler.store.git.fetch_faults import DENIED, Failure, fault_of
from reconciler.store.git.url import GitAccess, GitUrl

_CONNECT_S: Final = 20
_SILENCE_S: Final = 60
_CPU_S: Final = 6 * 3600
_PACK_BYTES: Final = 8 * 2**30
_STEP_BYTES: Final = 16 * 1024
"""The least amount that counts as progress: a server that sends a byte now and then is a silent one."""
_REPORT_S: Final = 1.0
_LOG_BYTES: Final = 8 * 1024

_SETTINGS: Final[tuple[str, ...]] = (
    "core.hooksPath=/dev/null",
    "core.askPass=",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "fetch.showForcedUpdates=false",
    f"http.lowSpeedTime={_SILENCE_S}",
    "http.lowSpeedLimit=1",
    # Always a pack, never loose files; when packs are joined is ours to say.
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
_ANSWER: Final = (
    """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$FLEET_USER" "$FLEET_TOKEN"; }; f"""
)
"""A credential helper that answers with the token, which is in the environment of the process alone."""
_ASKPASS: Final = """#!/bin/sh
case $1 in *assphrase*) printf '%s\\n' "$FLEET_PASSPHRASE" ;; esac
"""


class FetchTimeouts(NamedTuple):
    """The time limits of a fetch: it may last while data come, up to a total.

    `silence_s`: time without data, or next to none. `total_s`: enough for a first clone over a slow link.
    """

    silence_s: float = 300.0
    total_s: float = 6 * 3600.0


def programs_on(environ: Mapping[str, str], url: GitUrl) -> tuple[str, str]:
    """The absolute paths of git and ssh on the PATH that fetch from a URL; that of ssh is empty where none is needed.

    Raises StoreError: one is missing; the message says what to install.
    """
    path = environ.get("PATH", os.defpath)
    git, ssh = shutil.which("git", path=path), shutil.which("ssh", path=path)
    if git is None:
        raise StoreError("git fetches from URLs, and is not on the PATH; install git")
    if url.scheme == "ssh" and ssh is None:
        raise StoreError("OpenSSH's ssh fetches from ssh:// URLs, and is not on the PATH; install openssh-client")
    return str(Path(git).absolute()), str(Path(ssh).absolute()) if ssh and url.scheme == "ssh" else ""


class FetchProgress:
    """Reports received data, not more often than each second."""

    _COUNTED: Final = re.compile(rb"(Receiving|Resolving|Counting|Compressing|Enumerating)[^\r\n]*?(\d+)(?:/\d+\))?")
    _RECEIVED: Final = re.compile(rb", ([\d.]+) (bytes|KiB|MiB|GiB)")
    _UNITS: Final[Mapping[bytes, int]] = {b"bytes": 1, b"KiB": 2**10, b"MiB": 2**20, b"GiB": 2**30}

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._report = tell
        self._reported_s = -_REPORT_S
        self._received_bytes = 0.0
        self._moved: object = None

    def has_moved(self, progress: bytes) -> bool:
        """Return whether git's messages show progress: received or processed data."""
        for number, unit in self._RECEIVED.findall(progress):
            self._received_bytes = max(self._received_bytes, float(number) * self._UNITS[unit])
        moved = (self._COUNTED.findall(progress)[-1:], self._received_bytes // _STEP_BYTES)
        if moved == self._moved:
            return False
        self._moved = moved
        if time.monotonic() - self._reported_s >= _REPORT_S:
            self._reported_s = time.monotonic()
            self._report(f"{self._received_bytes / 1e6:.1f} MB have come")
        return True


class FetchSession(NamedTuple):
    """One fetch. `home`: an empty folder of ours. `lock`: held until the last process has ended.

    `stop`: set from another thread, it ends the fetch.
    """

    home: Path
    lock: int
    patience: FetchTimeouts
    stop: threading.Event


class Remote:
    """One server, for one fetch."""

    def __init__(
        self,
        url: GitUrl,
        clone: Path,
        access: GitAccess,
        programs: tuple[str, str],
        session: FetchSession,
        tell: Callable[[str], None],
    ) -> None:
        """Write what git and ssh read into the empty home. `tell`: called with what has come.

        Raises StoreError: the path of a key cannot be written for OpenSSH, or its passphrase cannot be given.
        """
        self._url, self._clone, self._access = url, clone, access
        self._git, self._ssh = programs
        self._session, self._home, self._report = session, session.home, tell
        self._until_s = time.monotonic() + session.patience.total_s
        self._address = url.address
        # The only file of configuration that the other side of a file:// URL reads, too: whoever owns the repository.
        (self._home / "config").write_text("[safe]\n\tdirectory = *\n")
        self._settings, helper_environ = _SETTINGS, access.helper_environ
        self._environ = {
            **helper_environ,
            "HOME": helper_environ.get("HOME", str(self._home)),
            "XDG_CONFIG_HOME": helper_environ.get("XDG_CONFIG_HOME", str(self._home)),
            "TMPDIR": str(self._home),
            "LC_ALL": "C",
            "PATH": os.pathsep.join((str(Path(self._git).parent), os.defpath)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": str(self._home / "config"),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": url.scheme,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        if url.scheme == "ssh":
            self._environ |= _ssh_environ(access, self._ssh, self._home)
        elif url.scheme != "file":
            helpers = filter(None, (_ANSWER if access.token else "", access.helper))
            self._settings += tuple(f"credential.{url.origin}.helper={helper}" for helper in helpers)
            self._environ |= access.proxies
            if access.token:
                self._environ |= {"FLEET_USER": access.user, "FLEET_TOKEN": access.token}
            if access.ca:
                (self._home / "ca.pem").write_bytes(access.ca)
                self._environ["GIT_SSL_CAINFO"] = str(self._home / "ca.pem")

    def heads(self) -> str:
        """The references of the server, as `git ls-remote --symref` lists them.

        Raises StoreError: it cannot be asked, or sends to another one.
        """
        ran = self._run("ls-remote", "--symref", "--", self._address, output_bytes=256 * 2**20)
        for address in re.findall(r"(?m)^warning: redirecting to (\S+)", ran.error.decode(errors="replace")):
            if not address.startswith(f"{self._url.origin}/"):
                raise StoreError(fault_of(self._failure(ran)))
            self._address = address
        return ran.output.decode(errors="surrogateescape")

    def bring(self, specs: Iterable[str]) -> None:
        """Write references of the server, with their history, into the clone. StoreError: it failed, or left one."""
        self._report("0.0 MB have come")
        options = ("--progress", "--no-tags", "--no-recurse-submodules", "--refmap=")
        ran = self._run("-c", "http.followRedirects=false", "fetch", *options, "--", self._address, *specs)
        if re.search(rb"(?m)^warning: rejected \S+ because shallow roots", ran.error):
            raise StoreError(
                "the repository there is shallow; bring the rest of its history: git fetch --unshallow there"
            )

    def join_packs(self) -> None:
        """Make few packs of many; where that fails the clone is as good as before."""
        self._ran(["repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index"], 2**20)

    def _run(self, *arguments: str, output_bytes: int = 2**20) -> Exited:
        ran = self._ran(arguments, output_bytes)
        if isinstance(ran, Exited):
            if ran.code:
                raise StoreError(fault_of(self._failure(ran)))
            return ran
        raise StoreError(self._why(ran))

    def _why(self, ended: Terminated) -> str:
        patience = self._session.patience
        match ended.reason:
            case Termination.LATE:
                return f"the fetch did not end within {patience.total_s:.0f} s and was given up"
            case Termination.SILENT:
                silence = f"nothing more came for {patience.silence_s:.0f} s and the fetch was given up"
                return f"{silence}; is the server or the link stuck?"
            case Termination.FLOODING:
                return "the repository has more branches and tags than can be looked through"
            case Termination.STOPPED:
                return "the fetch was stopped"
            case _:
                return f"git cannot be run ({ended.reason}: {ended.detail})"

    def _ran(self, arguments: Iterable[str], output_bytes: int) -> Exited | Terminated:
        settings = [part for setting in self._settings for part in ("-c", setting)]
        command = Command(
            argv=[self._git, *settings, f"--git-dir={self._clone.absolute()}", *arguments],
            environ=self._environ,
            folder=str(self._home),
        )
        limits = Limits(
            wall_s=max(0.0, self._until_s - time.monotonic()),
            silence_s=self._session.patience.silence_s,
            cpu_s=_CPU_S,
            file_bytes=_PACK_BYTES,
            output_bytes=output_bytes,
            error_bytes=16 * 2**20,
        )
        return run(
            command,
            limits,
            hear=FetchProgress(self._report).has_moved,
            stop=self._session.stop,
            held=[self._session.lock],
        )

    def _failure(self, ran: Exited) -> Failure:
        log = _tail(self._home / "ssh.log")
        return Failure(
            url=self._url,
            access=self._access,
            output=ran.error[-_LOG_BYTES:].decode(errors="replace"),
            log=log,
            key_fault=self._key_fault() if DENIED in log and self._access.key else "",
            most_bytes=_PACK_BYTES,
        )

    def _key_fault(self) -> str:
        """Return the error of ssh-keygen about a key that it cannot open; empty: it can, or cannot run."""
        keygen = str(Path(self._ssh).with_name("ssh-keygen"))
        command = Command([keygen, "-y", "-f", self._access.key], self._environ, str(self._home))
        ran = run(command, Limits(wall_s=_CONNECT_S, cpu_s=_CONNECT_S), stop=self._session.stop)
        if isinstance(ran, Terminated) or ran.code == 0:
            return ""
        return ran.error.decode(errors="replace") or "no"


def _ssh_environ(access: GitAccess, ssh: str, home: Path) -> dict[str, str]:
    environ = {"GIT_SSH_COMMAND": shlex.join([ssh, *_ssh_options(access, home)]), "GIT_SSH_VARIANT": "ssh"}
    if not access.passphrase:
        return {**environ, "SSH_ASKPASS_REQUIRE": "never"}
    if os.statvfs(home).f_flag & os.ST_NOEXEC:
        raise StoreError(
            f"the SSH key has a passphrase, and no program may be run in {home.parent} to give it; take a key without "
            "one, or a folder where programs may be run"
        )
    program = home / "askpass"
    program.write_text(_ASKPASS)
    program.chmod(stat.S_IRWXU)
    # Before OpenSSH 8.4 the program is asked where there is a display and no terminal.
    passphrase = access.passphrase.splitlines()[0]
    return {
        **environ,
        "SSH_ASKPASS": str(program),
        "SSH_ASKPASS_REQUIRE": "force",
        "DISPLAY": "none",
        "FLEET_PASSPHRASE": passphrase,
    }


def _ssh_options(access: GitAccess, home: Path) -> list[str]:
    """The arguments of ssh: only the key that was given, only hosts that were vouched for, and nothing is asked.

    `-F /dev/null` leaves every other option at its default in ssh_config(5): no proxy, no forwarding, no command.
    """
    options = {
        # A passphrase is asked for by the program of ours alone; without one, nothing ever is.
        "BatchMode": "no" if access.passphrase else "yes",
        "NumberOfPasswordPrompts": "1",
        "PreferredAuthentications": "publickey",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "IdentityFile": _quoted(access.key) if access.key else "none",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": " ".join(map(_quoted, access.known_hosts)) or os.devnull,
        "GlobalKnownHostsFile": os.devnull,
        "UpdateHostKeys": "no",
        "CheckHostIP": "no",
        "ConnectTimeout": str(_CONNECT_S),
        "ServerAliveInterval": str(_SILENCE_S // 4),
        "ServerAliveCountMax": "4",
        "LogLevel": "ERROR",
    }
    pairs = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return ["-F", "/dev/null", "-E", str(home / "ssh.log"), "-T", *pairs]


def _quoted(path: str) -> str:
    """As the parser of ssh takes a path: a percent sign would be a token, a blank an end."""
    if any(part in path for part in ('"', "\\", "\n", "${")):
        raise StoreError(f"{path}: OpenSSH takes no path with a quotation mark, backslash or ${{; rename it")
    return '"' + path.replace("%", "%%") + '"'


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
