"""The helm, kubectl and sops of the person who runs the command, never those of a store."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.errors import ConfigurationError
from reconciler.helm.sandbox import RenderFailed, run_once

_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.+-]+)?)", re.ASCII)
_QUESTION: Final[Mapping[str, tuple[str, ...]]] = {
    "helm": ("version", "--template={{.Version}}"),
    "kubectl": ("version", "--client"),
    "sops": ("--disable-version-check", "--version"),
}


class Wanted(NamedTuple):
    """A binary that was named: its absolute path, and `sha256` of it as hex digits. Empty: as PATH has it."""

    path: str = ""
    sha256: str = ""


class Tool(NamedTuple):
    """A binary, and its entry in a lock: names to versions."""

    path: str
    versions: Mapping[str, str]


class Tools:
    """Finds each binary once. What was asked of a binary is kept in the cache folder, by its inode and time."""

    def __init__(
        self,
        store: Path,
        wanted: Mapping[str, Wanted],
        environ: Mapping[str, str],
        cache: Path | None,
        *,
        network: bool,
    ) -> None:
        """`store`: the folder that no binary may be in. `network`: whether a tool may have one."""
        self._store = store.resolve()
        self._wanted, self._environ, self._network = wanted, environ, network
        self._cache = cache / "tools.json" if cache is not None else None
        self._found: dict[str, Tool] = {}

    def tool(self, name: str) -> Tool:
        """`helm`, `kubectl` or `sops`.

        Raises:
            ConfigurationError: it is not there, in the store, or another one than was named.
        """
        if name not in self._found:
            path = self._path(name)
            self._found[name] = Tool(str(path), self._versions(name, path))
        return self._found[name]

    def _path(self, name: str) -> Path:
        wanted = self._wanted.get(name, Wanted())
        if wanted.path:
            path = Path(wanted.path)
            if not path.is_absolute() or not wanted.sha256:
                raise ConfigurationError(f"--{name} is an absolute path, and --{name}-sha256 says which binary it is")
            if not path.is_file():
                raise ConfigurationError(f"--{name}: {path} is no file")
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != wanted.sha256.removeprefix("sha256:").lower():
                raise ConfigurationError(f"{path} is not the binary that --{name}-sha256 names: it has {found}")
        else:
            folders = [part for part in self._environ.get("PATH", "").split(os.pathsep) if part.startswith("/")]
            which = shutil.which(name, path=os.pathsep.join(folders))
            if which is None:
                named = "" if name == "sops" else f", or name it by --{name} and --{name}-sha256"
                raise ConfigurationError(f"{name} is not on the PATH; install it{named}")
            path = Path(which)
        if path.resolve().is_relative_to(self._store) or path.is_relative_to(self._store):
            raise ConfigurationError(f"{path} is in the store, and nothing in a store is ever run; use another {name}")
        return path

    def _versions(self, name: str, path: Path) -> dict[str, str]:
        status = path.stat()
        stamp = f"{path} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        known = self._kept()
        if stamp in known:
            return known[stamp]
        with tempfile.TemporaryDirectory(prefix="fleet-render-") as folder:
            try:
                said = run_once(
                    [str(path), *_QUESTION[name]], Path(folder), environ={}, allow_network=self._network
                ).decode(errors="replace")
            except RenderFailed as error:
                raise ConfigurationError(f"{path} does not say its version: {error}") from error
        found = _VERSION.findall(said)
        names = ("kubectl", "kustomize") if name == "kubectl" else (name,)
        if len(found) < len(names):
            raise ConfigurationError(f"{path} does not say its version: {said[:200]!r}")
        versions = dict(zip(names, found, strict=False))
        if self._cache is not None:
            kept = json.dumps({**known, stamp: versions})
            part = self._cache.with_suffix(f".{os.getpid()}")
            part.write_text(kept, encoding="utf-8")
            part.replace(self._cache)
        return versions

    def _kept(self) -> dict[str, dict[str, str]]:
        try:
            found = json.loads(self._cache.read_bytes()) if self._cache is not None else {}
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
