"""The operator's sops, run for one file at a time, contained, with a fixed command line and a small environment.

Nothing is written to a disk: the file goes in by stdin, the decrypted text comes back by stdout.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.errors import ConfigurationError
from reconciler.processes.run_program import Command, Exited, Limits, Terminated, Termination, run

_OPTION: Final = "--sops-binary"
_VERSION: Final = re.compile(r"^sops (3)\.(\d{1,4})\.\d{1,4}(?:\s|$)", re.ASCII)
_MINOR_LEAST: Final = 10
"""sops 3.10 is the first that decrypts stdin. Source: its changelog."""
_HANDED_ON: Final = frozenset(
    {"PATH", "HOME", "XDG_CONFIG_HOME", "GNUPGHOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "IDENTITY_ENDPOINT",
     "IDENTITY_HEADER", "MSI_ENDPOINT", "MSI_SECRET", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
     "https_proxy", "no_proxy"}
)  # fmt: skip
_HANDED_ON_BEGIN: Final = ("AWS_", "VAULT_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "HUAWEICLOUD_")
"""Credentials for clouds. Nothing of ours is among it, and no setting of sops itself: some of those name programs,
and some switch checks off."""
_SECRET_NAME: Final = re.compile(r"TOKEN|SECRET|PASSWORD|KEY|HEADER|CREDENTIAL", re.IGNORECASE)
_SECRET_LEAST: Final = 4
_SAID_CHARACTERS: Final = 400


LIMITS: Final = Limits(wall_s=30.0, cpu_s=30, file_bytes=2**20, output_bytes=16 * 2**20, error_bytes=256 * 1024)


class Ran(NamedTuple):
    """The result of a run. `code`: of its exit; None: it was ended, or could not be started, for the reason in `why`.

    `said`: the end of stderr, on one line and without its credentials.
    """

    code: int | None
    output: bytes = b""
    said: str = ""
    why: str = ""
    is_large: bool = False
    """True if it wrote more than it may."""


class Program(NamedTuple):
    """A sops binary. `environ`: its environment; `sha256`: of the binary, if named."""

    path: Path
    environ: Mapping[str, str]
    sha256: str = ""
    limits: Limits = LIMITS

    def decrypt(self, data: bytes, *, is_json: bool) -> Ran:
        """A run over a file, whose output has the form of the file."""
        form = "json" if is_json else "yaml"
        # No file of configuration and no service of keys but those that the file names takes part.
        return self._run(
            ["--config", "/dev/null", "decrypt", "--input-type", form, "--output-type", form, "--filename-override",
             f"file.{form}"],
            data,
        )  # fmt: skip

    def version(self) -> str:
        """Return its version, such as 3.13.3.

        Raises:
            ConfigurationError: it does not say one, or one that does not know what is needed.
        """
        ran = self._run(["--disable-version-check", "--version"], b"")
        found = _VERSION.match(ran.output.decode(errors="replace"))
        if ran.code != 0 or found is None:
            raise ConfigurationError(f"{_OPTION} {self.path} does not say a version of sops 3 {ran.why}".rstrip())
        if int(found[2]) < _MINOR_LEAST:
            raise ConfigurationError(f"{_OPTION} {self.path}: sops 3.{_MINOR_LEAST} or later is needed")
        return found[0].removeprefix("sops ").strip()

    def check(self) -> None:
        """Look at the binary, as before each run.

        Raises:
            ConfigurationError: it is not there, others may write it, or it is another one than was named.
        """
        where = f"{_OPTION} {self.path}"
        try:
            found = self.path.stat()
        except OSError as error:
            raise ConfigurationError(f"{where}: {error.strerror}") from error
        if not stat.S_ISREG(found.st_mode) or not os.access(self.path, os.X_OK):
            raise ConfigurationError(f"{where}: it is no program")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigurationError(f"{where}: others than its owner can write it; chmod go-w {self.path}")
        if found.st_uid not in (0, os.geteuid()):
            raise ConfigurationError(f"{where}: it belongs to another user, who could exchange it")
        if self.sha256:
            with self.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != self.sha256.removeprefix("sha256:").lower():
                raise ConfigurationError(f"{where} is not the binary that {_OPTION}-sha256 names: it has {digest}")

    def _run(self, arguments: list[str], data: bytes) -> Ran:
        try:
            self.check()
        except ConfigurationError as error:
            return Ran(None, why=str(error))
        command = Command([str(self.path), *arguments], self.environ, "/", data)
        match run(command, self.limits):
            case Exited(code, output, said):
                return Ran(code, output, self._unmarked(said))
            case Terminated(Termination.LATE):
                return Ran(None, why=f"it did not end within {self.limits.wall_s:g} s")
            case Terminated(Termination.FLOODING):
                return Ran(None, why=f"it wrote more than {self.limits.output_bytes:,} bytes", is_large=True)
            case Terminated(Termination.LOST):
                return Ran(None, why="what holds it was ended")
            case _:
                return Ran(None, why="it cannot be started")

    def _unmarked(self, complaint: bytes) -> str:
        said = " ".join(complaint.decode(errors="replace").split())
        for name, value in self.environ.items():
            if _SECRET_NAME.search(name) and len(value) >= _SECRET_LEAST:
                said = said.replace(value, "***")
        return said[-_SAID_CHARACTERS:]


def program_of(
    named: Path | None, sha256: str, environ: Mapping[str, str], *, identities: Path | None, store: str = ""
) -> Program | None:
    """The sops that was named; None: none was. `identities`: a file of age, for keys in groups of several kinds.

    Raises:
        ConfigurationError: it is no absolute path, in the store, or as `Program.check` says.
    """
    if named is None:
        if sha256:
            raise ConfigurationError(f"{_OPTION}-sha256 says which binary {_OPTION} is, which is not given")
        return None
    if not named.is_absolute():
        raise ConfigurationError(f"{_OPTION} {named}: give an absolute path; nothing is looked for on the PATH")
    folder = Path(store).resolve() if store and Path(store).is_dir() else None
    if folder is not None and (named.resolve().is_relative_to(folder) or named.is_relative_to(folder)):
        raise ConfigurationError(f"{_OPTION} {named} is in the store, and nothing in a store is ever run")
    told = {name: value for name, value in environ.items() if name in _HANDED_ON or name.startswith(_HANDED_ON_BEGIN)}
    told["LC_ALL"] = "C"
    if identities is not None:
        told["SOPS_AGE_KEY_FILE"] = str(identities.absolute())
    program = Program(named, told, sha256)
    program.check()
    return program
