"""Asking a server by libgit2, which brings what it needs for https, and libssh2 for machines without OpenSSH."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import ConfigLevel, CredentialType

from reconciler.adapters.git.child.heads import Head
from reconciler.adapters.git.child.known_hosts import known_hosts, standing
from reconciler.adapters.git.child.refusals import Refused, host_key_refusal

_CONNECT_MS: Final = 20_000
_SILENCE_MS: Final = 60_000
MAX_BYTES: Final = 8 * 2**30


class OverLibgit2:
    """One server, for one request."""

    def __init__(self, request: Mapping[str, Any], repository: Any, tell: Callable[[int, int], None]) -> None:
        """Set what libgit2 knows for the whole process. No configuration outside of the clone is read."""
        self._request = request
        self._tell = tell
        self._remote = repository.remotes.create_anonymous(request["url"])
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

    def heads(self) -> dict[str, Head]:
        """The references of the server."""
        found = self._remote.list_heads(callbacks=self._callbacks(), proxy=self._request["proxy"])
        return {head.name: Head(str(head.oid), head.symref_target or "") for head in found}

    def bring(self, specs: Sequence[str]) -> None:
        """Write references of the server, and all that they lead to, into the clone."""
        self._remote.fetch(list(specs), callbacks=self._callbacks(), proxy=self._request["proxy"])

    def _callbacks(self) -> Callbacks:
        return Callbacks(self._request, self._tell)


class Callbacks(pygit2.RemoteCallbacks):
    """Credentials when they are asked for, once; and whether the server is the one that was meant."""

    def __init__(self, request: Mapping[str, Any], tell: Callable[[int, int], None]) -> None:
        super().__init__()
        self._request = request
        self._tell = tell
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
        parts = urlsplit(self._request["url"])
        if name.strip("[]").lower() != (parts.hostname or ""):
            raise Refused("redirect", f"the server sends to another one ({name}); name that as STORE")
        if valid:
            return True
        if parts.scheme == "ssh":
            raise host_key_refusal(name, standing(self._request["known_hosts"], name.strip("[]"), parts.port))
        why = "no known authority vouches for its certificate; for one of your own set RECONCILER_GIT_CA"
        raise Refused("certificate", f"the server {name} is not trusted: {why}")

    def transfer_progress(self, stats: Any) -> None:
        """Tell what has come, and give up on what no fleet store can be."""
        if stats.received_bytes > MAX_BYTES:
            raise Refused("too-big", f"the repository is bigger than {MAX_BYTES:,} bytes")
        self._tell(stats.received_bytes, stats.indexed_deltas)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
