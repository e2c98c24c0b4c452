"""Sources of credentials for a Git server. They are read at every fetch, so that a renewed token is used at once.

Source: systemd.exec, "Credentials": `LoadCredential=` puts files into `$CREDENTIALS_DIRECTORY`.
"""

from __future__ import annotations

import os
import ssl
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
    """All that a fetch needs beside the address. Nothing of it is ever shown.

    `ca`: certificate authorities in PEM, in place of the system's; empty: those. `helper`: a credential helper of the
    operator, as of `credential.helper` in git-config(1), and `helper_environ` what it is told. `proxies`: the variables
    of curl(1), by lower-case name.
    """

    user: str = "git"
    key: str = ""
    passphrase: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    known_hosts: tuple[str, ...] = ()
    ca: bytes = b""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    helper: str = ""
    helper_environ: Mapping[str, str] = field(default_factory=dict, repr=False)


def access_from(environ: Mapping[str, str], url: GitUrl) -> GitAccess:
    """The credentials, known hosts, authorities and proxies for one URL.

    Raises:
        StoreError: a file that was named cannot be read.
    """
    files = _files(environ)
    user = url.user or _text(files.get("git-username")) or "git"
    if url.scheme == "ssh":
        passphrase = _text(files.get("git-ssh-key-passphrase"))
        key = files.get("git-ssh-key")
        # OpenSSH's own words for a missing file name no cause.
        _text(key)
        # Relative names mean the daemon's folder, not that of the process that fetches.
        return GitAccess(
            user=user, key=str(key.absolute()) if key else "", passphrase=passphrase,
            known_hosts=_known_hosts(environ, files.get("git-known-hosts")),
        )  # fmt: skip
    if url.scheme == "file":
        return GitAccess()
    token = _text(files.get("git-token")) or url.password
    proxies = {name.lower(): value for name, value in sorted(environ.items()) if value}
    helper = environ.get("RECONCILER_GIT_CREDENTIAL_HELPER", "")
    return GitAccess(
        user=user, token=token, ca=_authorities(environ), helper=helper,
        proxies={name: value for name, value in proxies.items() if name in _PROXY_VARIABLES},
        helper_environ={name: value for name, value in environ.items() if not name.startswith(_NOT_FOR_HELPERS)}
        if helper
        else {},
    )  # fmt: skip


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


def _known_hosts(environ: Mapping[str, str], named: Path | None) -> tuple[str, ...]:
    if named is not None:
        _text(named)
        return (str(named.absolute()),)
    usual = [Path("/etc/ssh/ssh_known_hosts")]
    if environ.get("HOME"):
        usual.append(Path(environ["HOME"]).absolute() / ".ssh/known_hosts")
    return tuple(str(path) for path in usual if os.access(path, os.R_OK))


def _authorities(environ: Mapping[str, str]) -> bytes:
    """The authorities that were named beside the system's, since git takes one file in place of them."""
    named = [Path(environ[name]) for name in ("SSL_CERT_FILE", "RECONCILER_GIT_CA") if environ.get(name)]
    if not named:
        return b""
    texts = [_text(path) for path in named]
    for path, text in zip(named, texts, strict=True):
        if "-----BEGIN" not in text:
            raise StoreError(f"{path}: the file of certificate authorities is not PEM")
    system = ssl.get_default_verify_paths().openssl_cafile
    candidates = [Path(name) for name in (system, *_BUNDLES) if os.access(name, os.R_OK)]
    return "\n".join([*texts, *(_text(path) for path in candidates[:1])]).encode()


_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Of Debian, Fedora, SUSE, and Alpine and macOS."""
_PROXY_VARIABLES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_NOT_FOR_HELPERS: Final = ("GIT_", "SSH_", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "RECONCILER_")
