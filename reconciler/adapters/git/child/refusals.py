"""What went wrong, in words for people: what it is, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit


class Refused(Exception):
    """A fault with a message for people. `code` tells kinds apart."""

    def __init__(self, code: str, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.code = code


def explain(error: Exception, request: Mapping[str, Any]) -> dict[str, str]:
    """The error as an answer: one line, without secrets and without what could steer a terminal."""
    text = str(error).strip("'\"")
    code = error.code if isinstance(error, Refused) else "failed"
    if not isinstance(error, Refused):
        found = next((entry for entry in _KNOWN if re.search(entry[0], text)), None)
        if found:
            code, say = found[1], found[2]
            text = say(text, request)
        elif request.get("proxy") and (urlsplit(request["proxy"]).hostname or "/") in text:
            text = f"{text}; that is the proxy of https_proxy"
    for secret in (request.get("token"), request.get("passphrase"), request.get("proxy")):
        text = text.replace(secret, "…") if secret else text
    text = "".join(char if char.isprintable() else " " for char in text)
    return {"error": text[:500], "code": code}


def key_refusal(request: Mapping[str, Any]) -> Refused:
    """Why a private key cannot be opened: its passphrase, or because it is none."""
    key = request["key"]
    with Path(key).open("rb") as file:
        is_key = b"PRIVATE KEY" in file.read(100)
    if not is_key:
        return Refused("credentials", f"{key} is no private key; name the one that belongs to the deploy key")
    if request["passphrase"]:
        return Refused("credentials", f"the passphrase does not open the SSH key {key} (git-ssh-key-passphrase)")
    return Refused(
        "credentials", f"the SSH key {key} has a passphrase, and none was given (git-ssh-key-passphrase), or is damaged"
    )


def host_key_refusal(name: str, kind: str) -> Refused:
    """Why the server's key is not taken. `kind`: unknown, changed or revoked."""
    return Refused("host-key", f"the server {name} is not trusted: {_HOST_KEYS[kind]}")


_HOST_KEYS: Final = {
    "unknown": "its key is unknown: git-known-hosts has none of it; add the one that the forge publishes, as a line of "
    "ssh-keyscan",
    "changed": "it shows another key than git-known-hosts has of it. It may be another server that answers; if the "
    "forge has published a new key, put that in place of the old one",
    "revoked": "the key that it shows is @revoked in git-known-hosts; ask who runs the server for its new key",
}  # fmt: skip


def _says(text: str) -> Callable[[str, Mapping[str, Any]], str]:
    return lambda found, request: text.format(text=found)


def _proxy_refusal(text: str, request: Mapping[str, Any]) -> str:
    has_user = "@" in urlsplit(request.get("proxy") or "").netloc
    if has_user:
        return "the proxy does not accept the user and password of https_proxy (407)"
    return "the proxy wants a user and password (407); write them into https_proxy: http://USER:PASSWORD@HOST:PORT"


def _key_text(text: str, request: Mapping[str, Any]) -> str:
    try:
        return str(key_refusal(request))
    except OSError:
        return f"the SSH key cannot be read ({text})"


_KNOWN: Final[tuple[tuple[str, str, Callable[[str, Mapping[str, Any]], str]], ...]] = (
    (r"^proxy (authentication required|requires authentication)|^407", "proxy", _proxy_refusal),
    (r"proxy returned unexpected status", "proxy",
     _says("the proxy does not lead there ({text}); ask for leave at the proxy, or exempt the host with no_proxy")),
    # Who does not like a token asks for another one, and is refused there: what is left are redirects.
    (r"too many redirects", "redirect",
     _says("the server sends round in circles (too many redirects); name the repository's own address as STORE")),
    (r"status code: 401|authentication required", "credentials", _says("the server refuses access (401)")),
    (r"status code: 403", "credentials",
     _says("the server forbids access (403); may the token or key read this repository?")),
    (r"status code: 404|[Rr]epository not found|not appear to be a git|could not find repo|failed to resolve path",
     "not-found", _says("there is no repository there, or it is hidden from these credentials (404)")),
    (r"status code: 30[1278]|redirect", "redirect",
     _says("the server answers with another address; use that one as STORE")),
    (r"[Pp]assphrase|private key|[Uu]nable to open public key", "credentials", _key_text),
    (r"authenticate|callback returned error", "credentials", _says("the server does not accept the SSH key ({text})")),
    (r"load certificates", "certificate", _says("the file of certificate authorities is not PEM ({text})")),
    (r"could not read refs from remote", "not-found",
     _says("there is no repository there, or the key may not read it")),
)  # fmt: skip
"""What libgit2 says, to a code and what people are told."""
