"""The process that talks to a Git server: one request on stdin, one answer on stdout, both JSON.

It is a process of its own, because a fetch inside a thread can neither be ended nor be held to a limit of memory, and
because libgit2 knows home folder, certificates and time limits only for a whole process. It is run as a file in
Python's isolated mode and imports nothing of the project. What it is told comes in on stdin alone: no secret is in an
argument or in the environment.

Request: `url`, `rev` (null: the server's default branch), `folder` (the bare clone), `into` (the reference to write),
`user`, `key`, `passphrase`, `token`, `known_hosts` (text), `ca` (files), `proxy`, `home` (an empty folder).
Answer: `{"commit": …, "reference": …}` or `{"error": …, "code": …}`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import ConfigLevel, CredentialType

_CONNECT_MS: Final = 20_000
_SILENCE_MS: Final = 60_000
_MAX_BYTES: Final = 8 * 2**30
_MAX_PACKS: Final = 64
_MAX_HEADS: Final = 1_000_000
_KNOWN_HOST: Final = re.compile(
    r"\s*([^\s@#][^\s]{0,1000})\s+([a-z0-9@.-]{3,60})\s+([A-Za-z0-9+/]{16,4000}={0,2})(?:\s|$)"
)


class Refused(Exception):
    """A fault with a message for people. `code` tells kinds apart."""

    def __init__(self, code: str, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.code = code


class Callbacks(pygit2.RemoteCallbacks):
    """Credentials when they are asked for, once; and whether the server is the one that was meant."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__()
        self._request = request
        self._asked = 0

    def credentials(self, url: str, username_from_url: str | None, allowed_types: CredentialType) -> Any:
        """The key or token of the request.

        libgit2 asks again when the server did not like the answer.
        """
        request = self._request
        # libgit2 follows redirects to other hosts (its setting http.followRedirects has no effect for a list of heads:
        # measured with 1.9) and asks here with the new address. Credentials are for the host that was named alone.
        if _origin(url) != _origin(request["url"]):
            raise Refused("redirect", f"the server sends to another one ({_origin(url)}); name that as STORE")
        if allowed_types & CredentialType.USERNAME:
            return pygit2.Username(request["user"])
        self._asked += 1
        if allowed_types & CredentialType.SSH_KEY:
            if not request["key"]:
                raise Refused("credentials", "the server wants an SSH key, and none was given (git-ssh-key)")
            if self._asked > 1:
                raise Refused("credentials", "the server does not accept the SSH key; is it a deploy key there?")
            return pygit2.Keypair(request["user"], None, request["key"], request["passphrase"])
        if allowed_types & CredentialType.USERPASS_PLAINTEXT:
            if not request["token"]:
                raise Refused("credentials", "the server wants a token (401), and none was given (git-token)")
            if self._asked > 1:
                raise Refused("credentials", "the server does not accept the token (401); it may have expired")
            return pygit2.UserPass(request["user"], request["token"])
        raise Refused("credentials", "the server wants a way of signing in that is not known here")

    def certificate_check(self, certificate: None, valid: bool, host: bytes) -> bool:
        """Only what known_hosts (ssh) or the certificate authorities (https) vouch for."""
        name = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
        if name.strip("[]").lower() != (urlsplit(self._request["url"]).hostname or ""):
            raise Refused("redirect", f"the server sends to another one ({name}); name that as STORE")
        if valid:
            return True
        if self._request["url"].startswith("ssh:"):
            why = "its key is not among the known hosts, or another one stands there (git-known-hosts)"
            raise Refused("host-key", f"the server {name} is not trusted: {why}")
        why = "no known authority vouches for its certificate; for one of your own set RECONCILER_GIT_CA"
        raise Refused("certificate", f"the server {name} is not trusted: {why}")

    def transfer_progress(self, stats: Any) -> None:
        """Give up on what no fleet store can be."""
        if stats.received_bytes > _MAX_BYTES:
            raise Refused("too-big", f"the repository is bigger than {_MAX_BYTES:,} bytes")


def prepare(request: dict[str, Any]) -> None:
    """Set what libgit2 knows for the whole process. No configuration outside of the clone is read."""
    # A crash leaves no memory behind that holds a key. A hardened service may not even ask, and has its own limit.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    home = Path(request["home"])
    (home / ".ssh").mkdir(mode=0o700)
    (home / ".ssh/known_hosts").write_text(known_hosts(request["known_hosts"]))
    settings = pygit2.settings
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
        settings.search_path[level] = str(home)
    settings.homedir = str(home)
    settings.server_connect_timeout = _CONNECT_MS
    settings.server_timeout = _SILENCE_MS
    # Nothing of a repository is ever run here, so whose it is does not matter.
    settings.owner_validation = False
    for file in request["ca"]:
        settings.set_ssl_cert_locations(file, None)


def known_hosts(text: str) -> str:
    """The lines that libssh2 understands. It reads past the end of malformed ones (libssh2 issues 1628 and 2012).

    Lines with a marker (@cert-authority, @revoked) are left out: what they stand for stays unknown, and so refused.
    """
    found = (_KNOWN_HOST.match(line) for line in text.splitlines())
    return "".join(f"{match[1]} {match[2]} {match[3]}\n" for match in found if match)


def fetch(request: dict[str, Any]) -> dict[str, str]:
    """Ask the server for the revision, and bring it in unless the clone has it."""
    folder = Path(request["folder"])
    with _locked(folder):
        repository = _open(folder)
        remote = repository.remotes.create_anonymous(request["url"])
        heads = {head.name: head for head in remote.list_heads(callbacks=Callbacks(request), proxy=request["proxy"])}
        if not heads:
            raise Refused("empty", "the repository has no commit yet; push the store first")
        reference = choose(heads, request["rev"])
        if reference:
            specs = [f"+{reference}:{request['into']}"]
        else:
            specs = ["+refs/heads/*:refs/fleet/heads/*", "+refs/tags/*:refs/fleet/tags/*"]
        wanted = str(heads[reference].oid) if reference else request["rev"]
        if wanted not in repository or (reference and not _is_at(repository, request["into"], wanted)):
            remote.fetch(specs, callbacks=Callbacks(request), proxy=request["proxy"])
            _repack(repository, folder)
        if not reference:
            if wanted not in repository:
                raise Refused("revision", f"no branch or tag leads to a commit {wanted}")
            repository.references.create(request["into"], pygit2.Oid(hex=wanted), force=True)
        found = repository.references.get(request["into"])
        if found is None:
            raise Refused("revision", f"{reference} went away while it was fetched")
        return {"commit": str(found.peel(pygit2.Commit).id), "reference": reference}


def choose(heads: dict[str, Any], rev: str | None) -> str:
    """The full name of the reference that is meant; empty for a commit id."""
    if len(heads) > _MAX_HEADS:
        raise Refused("too-big", "the repository has more branches and tags than can be looked through")
    if rev in (None, "HEAD"):
        if "HEAD" not in heads:
            raise Refused("revision", "the server's default branch does not exist; name one with --rev")
        target = heads["HEAD"].symref_target
        return target if target in heads else "HEAD"
    assert rev is not None
    if rev.startswith("refs/"):
        found = [name for name in (rev,) if name in heads]
    else:
        found = [name for name in (f"refs/heads/{rev}", f"refs/tags/{rev}") if name in heads]
    if len({str(heads[name].oid) for name in found}) > 1:
        raise Refused("revision", f"{rev} is a branch and a tag; write refs/heads/{rev} or refs/tags/{rev}")
    if found:
        return found[0]
    if re.fullmatch(r"[0-9a-f]{40}", rev):
        return ""
    branches = sorted(name.removeprefix("refs/heads/") for name in heads if name.startswith("refs/heads/"))
    shown = ", ".join(branches[:5]) + (", …" if len(branches) > 5 else "")
    raise Refused("revision", f"there is no branch or tag {rev} any more, or there never was (branches: {shown})")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def _is_at(repository: Any, name: str, wanted: str) -> bool:
    found = repository.references.get(name)
    return found is not None and str(found.target) == wanted


def _open(folder: Path) -> Any:
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        pygit2.init_repository(str(folder), bare=True)
    return pygit2.Repository(str(folder))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _repack(repository: Any, folder: Path) -> None:
    """One pack in place of many: every fetch adds one, and every read looks through all of them."""
    packs = sorted((folder / "objects/pack").glob("*.pack"))
    if len(packs) < _MAX_PACKS:
        return
    repository.pack()
    kept = set((folder / "objects/pack").glob("*.pack")) - set(packs)
    for pack in packs if kept else ():
        pack.with_suffix(".idx").unlink(missing_ok=True)
        pack.unlink()


def explain(error: Exception, request: dict[str, Any]) -> dict[str, str]:
    """What went wrong as one line for people, without secrets and without what could steer a terminal."""
    text = str(error).strip("'\"")
    code = error.code if isinstance(error, Refused) else "failed"
    if not isinstance(error, Refused):
        known = next((found for pattern, *found in _KNOWN if re.search(pattern, text)), None)
        if known:
            code, text = known[0], known[1].format(text=text)
    for secret in (request.get("token"), request.get("passphrase"), request.get("proxy")):
        text = text.replace(secret, "…") if secret else text
    text = "".join(char if char.isprintable() else " " for char in text)
    return {"error": text[:500], "code": code}


_KNOWN: Final = (
    (r"status code: 401|authentication (required|replays)", "credentials", "the server refuses access (401)"),
    (r"status code: 403", "credentials", "the server forbids access (403); may the token or key read this repository?"),
    (
        r"status code: 404|[Rr]epository not found|not appear to be a git|could not find repo|failed to resolve path",
        "not-found",
        "there is no repository there, or it is hidden from these credentials (404)",
    ),
    (r"status code: 30[1278]|redirect", "redirect", "the server answers with another address; use that one as STORE"),
    (r"authenticate|[Pp]assphrase|private key|[Uu]nable to open public key|callback returned error",
     "credentials", "the server does not accept the SSH key, or its file cannot be read ({text})"),
    (r"load certificates", "certificate", "the file of certificate authorities is not PEM ({text})"),
    (r"could not read refs from remote", "not-found", "there is no repository there, or the key may not read it"),
)  # fmt: skip


def main() -> None:
    """Read the request, answer it."""
    # A store may hold Secrets: what is kept of it is its owner's alone.
    os.umask(0o077)
    request = json.load(sys.stdin)
    try:
        prepare(request)
        answer = fetch(request)
    except (Refused, pygit2.GitError, OSError, KeyError, ValueError) as error:
        answer = explain(error, request)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
