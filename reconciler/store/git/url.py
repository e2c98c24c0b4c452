"""Git URLs and OCI artifacts as STORE names them, shown without secrets; their revision, and credentials of a server.

Source: design#hostile-input; `docs/how-to/systemd.md`: URLs are https, ssh or file; a host, user, path or
revision that begins with `-` could be read as an option somewhere (CVE-2017-1000117) and is refused everywhere.
Credentials are read at every fetch, so that a renewed token is used at once (systemd.exec, "Credentials").
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from reconciler.api.refs import DIGEST
from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.regex import regex
from reconciler.secret_files import credential_file, read_secret_file, secret_text

_SCHEME: Final = regex(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
_LIKE_SCP: Final = regex(r"(?:(?P<user>[^/\\:@\s]+)@)?(?P<host>[^/\\:@\s]{2,}):(?P<path>[^\\]+)")
_HOST: Final = regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45}", re.ASCII)
_USER: Final = regex(r"[A-Za-z0-9_.][A-Za-z0-9_.@+-]{0,100}", re.ASCII)
_REVISION: Final = regex(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,254}", re.ASCII)
_FORBIDDEN_IN_REVISION: Final = ("..", "//", "/.", "@{", ".lock")
_ARTIFACT: Final = regex(
    r"/(?P<path>[a-z0-9][a-z0-9._/-]{0,254})(?::(?P<tag>\w[\w.-]{0,127}))?(?:@sha256:(?P<digest>[0-9a-f]{64}))?",
    re.ASCII,
)
"""Source: OCI Distribution Specification 1.1, "Pulling manifests"."""
_TAG: Final = regex(r"\w[\w.-]{0,127}", re.ASCII)
_HEX_DIGEST: Final = regex(r"[0-9a-f]{64}", re.ASCII)
_SHORT_DIGEST: Final = regex(r"[0-9a-f]{7,63}", re.ASCII)
_HEADS_MAX: Final = 1_000_000
_NAME: Final = r"(HEAD|refs/[^\x00-\x20\x7f:?*\[\\^~]{1,1000})"
_HEAD: Final = regex(rf"(?m)^([0-9a-f]{{40}})\t{_NAME}$")
_TARGET: Final = regex(rf"(?m)^ref: {_NAME}\t(HEAD)$")
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_USER: Final = "git"
"""The account of forges behind every deploy key; with a token they take any name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitUrl:
    """A repository somewhere else. `str()` is fit for any output; `subdir` is the store's folder inside of it.

    `rev`: of `oci:` alone, which has it in the URL: a tag, or the 64 hex digits of a digest.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    subdir: str = ""
    rev: str = ""
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def address(self) -> str:
        """The URL to connect to, without user and password except the account of ssh."""
        if self.scheme == "file":
            return f"file://{self.path}"
        return f"{self.origin}{quote(self.path, safe='/~+@!$&,;=:()*')}"

    @property
    def origin(self) -> str:
        """The address without its path: whoever credentials are for."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        account = f"{self.user or _DEFAULT_USER}@" if self.scheme == "ssh" else ""
        return f"{self.scheme}://{account}{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def digest(self) -> str:
        """A name for the clone's folder."""
        return hashlib.sha256(self._place.encode()).hexdigest()[:24]

    @property
    def is_artifact(self) -> bool:
        """Return whether it is an artifact of an OCI registry."""
        return self.scheme == "oci"

    @property
    def _place(self) -> str:
        """The address, with the tag or digest of an artifact."""
        mark = "@sha256:" if is_hex_digest(self.rev) else ":"
        return f"{self.address}{mark}{self.rev}" if self.rev else self.address

    def __str__(self) -> str:
        return f"{self._place}//{self.subdir}" if self.subdir else self._place


def is_hex_digest(rev: str) -> bool:
    """Return whether a revision of an artifact is a digest, which always names the same."""
    return _HEX_DIGEST.fullmatch(rev) is not None


def is_git_url(text: str) -> bool:
    """Return whether STORE is a URL (or `user@host:path`) rather than a folder."""
    if _SCHEME.match(text):
        return True
    match = _LIKE_SCP.fullmatch(text)
    return match is not None and (match["user"] is not None or re.search(r"\.git(//|/?$)", text) is not None)


def parse_git_url(text: str) -> GitUrl:
    """The parts of a URL. `//` inside the path begins the folder of the store: `https://host/fleet.git//clusters`.

    Raises ConfigurationError: it is none that is read; the message never holds its user and password.
    """
    if not text.isprintable() or " " in text:
        raise ConfigurationError("the Git URL holds a blank or a character that does not print; check its spelling")
    if not _SCHEME.match(text):
        match = _LIKE_SCP.fullmatch(text)
        assert match is not None, "only called for what is_git_url accepts"
        path = match["path"]
        return _checked("ssh", match["host"], None, path if path.startswith("/") else f"/{path}", match["user"] or "")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigurationError("the Git URL has a host or port that cannot be read; check its spelling") from error
    if parts.query or parts.fragment:
        raise ConfigurationError("a Git URL has no ? and no #; give the branch or tag with --rev")
    if parts.scheme.lower() == "oci":
        if "@" in parts.netloc:
            raise ConfigurationError(
                "an oci:// URL has no user and password; RECONCILER_OCI_AUTH_FILE names their file"
            )
        name, _, subdir = parts.path.partition("//")
        artifact = _ARTIFACT.fullmatch(name)
        if artifact is None or ".." in artifact["path"] or not _HOST.fullmatch(host):
            raise ConfigurationError("an artifact is named as oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:DIGEST")
        rev = artifact["digest"] or artifact["tag"] or "latest"
        return GitUrl(scheme="oci", host=host, port=port, path=f"/{artifact['path']}", subdir=_subdir(subdir), rev=rev)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return _checked(parts.scheme.lower(), host, port, unquote(parts.path), user, password)


def _checked(scheme: str, host: str, port: int | None, path: str, user: str, password: str = "") -> GitUrl:
    is_local = host in LOOPBACK
    if scheme not in ("https", "ssh", "file") and not (scheme == "http" and is_local):
        raise ConfigurationError(f"{scheme}:// is not read: use https://, ssh://, file:// or oci://")
    if scheme == "file":
        if host and not is_local:
            raise ConfigurationError("file:// takes a path on this machine, with three slashes: file:///srv/fleet.git")
        host, port, user, password = "", None, "", ""
    elif not _HOST.fullmatch(host):
        raise ConfigurationError("the Git URL has no host name that can be used; check its spelling")
    elif user and not _USER.fullmatch(user):
        raise ConfigurationError("the user in the Git URL has characters that no account has; check its spelling")
    path, _, subdir = path.partition("//")
    if path.strip("/") == "" or any(part.startswith("-") for part in path.split("/")) or not path.isprintable():
        raise ConfigurationError("the Git URL names no path that can be used; check its spelling")
    subdir = _subdir(subdir)
    return GitUrl(scheme=scheme, host=host, port=port, path=path, subdir=subdir, user=user, password=password)


def _subdir(text: str) -> str:
    subdir = text.strip("/")
    if any(part in ("", ".", "..") for part in subdir.split("/")) and subdir:
        raise ConfigurationError("the folder after // in the Git URL is written without . and ..")
    return subdir


def check_revision(rev: str, url: GitUrl) -> str:
    """The branch, tag or full commit id, as it was given; of an artifact the tag, or the hex digits of the digest.

    A short digest keeps its `sha256:`, which no tag has.
    Raises RevisionNotFound: no server has a revision of that name.
    """
    if url.is_artifact:
        digits = rev.removeprefix(DIGEST)
        is_short = digits != rev and not is_hex_digest(digits)
        if not (_SHORT_DIGEST if is_short else _TAG).fullmatch(digits):
            raise RevisionNotFound(f"{rev[:80]!r} is no tag or digest of an artifact; a short one has seven digits")
        return rev if is_short else digits
    if not is_revision_name(rev):
        raise RevisionNotFound(f"{rev[:80]!r} is no branch, tag or full commit id, which is what a Git URL takes")
    return rev


def is_revision_name(text: str) -> bool:
    """Return whether a text may name a branch, tag or commit, and is no expression of Git."""
    is_plain = _REVISION.fullmatch(text) is not None and not any(part in text for part in _FORBIDDEN_IN_REVISION)
    return is_plain and not text.endswith(("/", "."))


SHA256: Final = (
    "its objects have SHA-256 names, which are not read here; push the store to a repository with SHA-1 names"
)


def choose(listed: str, rev: str | None) -> tuple[str, str]:
    """The full name and target of the reference that is meant; the name is empty for a commit id.

    `listed`: the output of `git ls-remote --symref`. Names that could be read as more are left out.

    Raises RevisionNotFound: the server has none of that name, or two; StoreError: it has too many.
    """
    heads = {name: oid for oid, name in _HEAD.findall(listed)}
    if not heads and re.search(r"^[0-9a-f]{64}\t", listed, re.M):
        raise StoreError(SHA256)
    if not heads:
        raise RevisionNotFound("the repository has no commit yet, or its last branch was deleted; push the store")
    if len(heads) > _HEADS_MAX:
        raise StoreError("the repository has more branches and tags than can be looked through")
    if rev is None or rev == "HEAD":
        if "HEAD" not in heads:
            raise RevisionNotFound("the server's default branch does not exist; name one with --rev")
        target = next((target for target, _ in reversed(_TARGET.findall(listed))), "")
        name = target if target in heads else "HEAD"
        return name, heads[name]
    names = (rev,) if rev.startswith("refs/") else (f"refs/heads/{rev}", f"refs/tags/{rev}")
    matches = [name for name in names if name in heads]
    if len({heads[name] for name in matches}) > 1:
        raise RevisionNotFound(f"{rev} is a branch and a tag; write refs/heads/{rev} or refs/tags/{rev}")
    if matches:
        return matches[0], heads[matches[0]]
    if re.fullmatch(r"[0-9a-f]{40}", rev):
        return "", rev
    branches = sorted(name.removeprefix("refs/heads/") for name in heads if name.startswith("refs/heads/"))
    some = ", ".join(branches[:5]) + (", …" if len(branches) > 5 else "")
    raise RevisionNotFound(f"there is no branch or tag {rev} any more, or there never was (branches: {some})")


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

    Raises StoreError: a file that was named cannot be read.
    """
    named = {
        name: credential_file(Path(environ[variable]) if environ.get(variable) else None, name, environ)
        for name, variable in _VARIABLES.items()
    }
    files = {name: path for name, path in named.items() if path is not None}
    user = url.user or _secret(files, "git-username", environ) or "git"
    if url.scheme == "ssh":
        passphrase = _secret(files, "git-ssh-key-passphrase", environ)
        key = files.get("git-ssh-key")
        # OpenSSH's own words for a missing file name no cause.
        _secret(files, "git-ssh-key", environ)
        # Relative names mean the daemon's folder, not that of the process that fetches.
        return GitAccess(
            user=user, key=str(key.absolute()) if key else "", passphrase=passphrase,
            known_hosts=_known_hosts(environ, files.get("git-known-hosts")),
        )  # fmt: skip
    if url.scheme == "file":
        return GitAccess()
    token = _secret(files, "git-token", environ) or url.password
    proxies = {name.lower(): value for name, value in sorted(environ.items()) if value}
    helper = environ.get("RECONCILER_GIT_CREDENTIAL_HELPER", "")
    return GitAccess(
        user=user, token=token, ca=authorities(environ, "RECONCILER_GIT_CA"), helper=helper,
        proxies={name: value for name, value in proxies.items() if name in _PROXY_VARIABLES},
        helper_environ={name: value for name, value in environ.items() if not name.startswith(_NOT_FOR_HELPERS)}
        if helper
        else {},
    )  # fmt: skip


def _secret(files: Mapping[str, Path], name: str, environ: Mapping[str, str]) -> str:
    if name not in files:
        return ""
    try:
        text = secret_text(files[name], name, environ)
    except ConfigurationError as error:
        raise StoreError(str(error)) from error
    if name != "git-ssh-key" and not text.isprintable():
        raise StoreError(f"{name} {files[name]}: it has several lines, or signs that do not print; write one line")
    return text


def _public_text(path: Path, what: str) -> str:
    try:
        data = read_secret_file(path, what, bytes_max=_MAX_BYTES, is_private=False)
    except ConfigurationError as error:
        raise StoreError(str(error)) from error
    return data.decode("utf-8", errors="replace").strip()


def _known_hosts(environ: Mapping[str, str], named: Path | None) -> tuple[str, ...]:
    if named is not None:
        _public_text(named, "git-known-hosts")
        return (str(named.absolute()),)
    usual = [Path("/etc/ssh/ssh_known_hosts")]
    if environ.get("HOME"):
        usual.append(Path(environ["HOME"]).absolute() / ".ssh/known_hosts")
    return tuple(str(path) for path in usual if os.access(path, os.R_OK))


def authorities(environ: Mapping[str, str], variable: str) -> bytes:
    """The authorities that were named beside the system's, in PEM: git takes one file in place of them."""
    named = {name: Path(environ[name]) for name in ("SSL_CERT_FILE", variable) if environ.get(name)}
    if not named:
        return b""
    texts = [_public_text(path, name) for name, path in named.items()]
    for (name, path), text in zip(named.items(), texts, strict=True):
        if "-----BEGIN" not in text:
            raise StoreError(f"{name} {path}: the file of certificate authorities is not PEM; write its PEM there")
    system = ssl.get_default_verify_paths().openssl_cafile
    candidates = [Path(name) for name in (system, *_BUNDLES) if os.access(name, os.R_OK)]
    return "\n".join([*texts, *(_public_text(path, "system") for path in candidates[:1])]).encode()


_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Of Debian, Fedora, SUSE, and Alpine and macOS."""
_PROXY_VARIABLES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_NOT_FOR_HELPERS: Final = ("GIT_", "SSH_", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "RECONCILER_")
