"""Where credentials for a Git server come from. They are read at every fetch, so that a renewed token is used at once.

Source: systemd.exec, "Credentials": `LoadCredential=` puts files into `$CREDENTIALS_DIRECTORY`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.adapters.git.url import GitUrl
from reconciler.errors import StoreError

_VARIABLES: Final = {
    "git-ssh-key": "RECONCILER_GIT_SSH_KEY",
    "git-ssh-key-passphrase": "RECONCILER_GIT_SSH_KEY_PASSPHRASE_FILE",
    "git-known-hosts": "RECONCILER_GIT_KNOWN_HOSTS",
    "git-token": "RECONCILER_GIT_TOKEN_FILE",
    "git-username": "RECONCILER_GIT_USERNAME_FILE",
}
"""Name in `$CREDENTIALS_DIRECTORY` to the variable that names a file instead; the variable wins."""
_MAX_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAccess:
    """All that a fetch needs beside the address. Nothing of it is ever shown."""

    user: str = "git"
    key: str = ""
    passphrase: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)
    ca: tuple[str, ...] = ()
    proxy: str | None = field(default=None, repr=False)


def access_from(environ: Mapping[str, str], url: GitUrl) -> GitAccess:
    """The credentials, known hosts, authorities and proxy for one URL.

    Raises:
        StoreError: a file that was named cannot be read.
    """
    files = _files(environ)
    user = url.user or _text(files.get("git-username")) or "git"
    if url.scheme == "ssh":
        passphrase = _text(files.get("git-ssh-key-passphrase"))
        hosts = _known_hosts(environ, files.get("git-known-hosts"))
        key = files.get("git-ssh-key")
        # libgit2's own words for a missing file name neither the file nor the cause.
        if key is not None:
            _text(key)
        # Relative names mean the daemon's folder, not that of the process that fetches.
        return GitAccess(user=user, key=str(key.absolute()) if key else "", passphrase=passphrase, known_hosts=hosts)
    if url.scheme == "file":
        return GitAccess()
    named = [Path(environ[name]) for name in ("SSL_CERT_FILE", "RECONCILER_GIT_CA") if environ.get(name)]
    for file in named:
        _text(file)
    ca = tuple(str(file.absolute()) for file in named)
    token = _text(files.get("git-token")) or url.password
    return GitAccess(user=user, token=token, ca=ca, proxy=_proxy(environ, url))


def _files(environ: Mapping[str, str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    folder = environ.get("CREDENTIALS_DIRECTORY")
    for name, variable in _VARIABLES.items():
        if environ.get(variable):
            found[name] = Path(environ[variable])
        elif folder and (Path(folder) / name).is_file():
            found[name] = Path(folder) / name
    return found


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", errors="replace").strip()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; it was named for access to the Git server") from error


def _known_hosts(environ: Mapping[str, str], named: Path | None) -> str:
    if named is not None:
        return _text(named)
    usual = [Path("/etc/ssh/ssh_known_hosts")]
    if environ.get("HOME"):
        usual.append(Path(environ["HOME"]) / ".ssh/known_hosts")
    return "\n".join(_text(path) for path in usual if os.access(path, os.R_OK))


def _proxy(environ: Mapping[str, str], url: GitUrl) -> str | None:
    """As curl reads `https_proxy` and `no_proxy`."""
    proxies = {name.lower().removesuffix("_proxy"): value for name, value in sorted(environ.items()) if value}
    proxies = {name: value for name, value in proxies.items() if f"{name}_proxy" in _PROXY_VARIABLES}
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or _is_exempt(url.host, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_exempt(host: str, no_proxy: str) -> bool:
    names = [name.strip().lstrip(".").lower() for name in no_proxy.split(",")]
    host = host.lower()
    return "*" in names or any(name and (host == name or host.endswith(f".{name}")) for name in names)


_PROXY_VARIABLES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
