"""The lines of known_hosts, for a library that reads them worse than OpenSSH does.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import re
from typing import Final

_LINE: Final = re.compile(
    r"\s*(?:@(?P<mark>[a-z-]{1,30})\s+)?(?P<names>[^\s@#][^\s]{0,1000})\s+(?P<kind>[a-z0-9@.-]{3,60})"
    r"\s+(?P<key>[A-Za-z0-9+/]{16,4000}={0,2})(?:\s|$)"
)


def known_hosts(text: str) -> str:
    """The lines that libssh2 understands. It reads past the end of malformed ones (libssh2 issues 1628 and 2012).

    It knows no markers. So lines with one are left out, and of a key that is marked as revoked, for whichever host,
    every line: what they stand for stays unknown, and so refused.
    """
    found = _lines(text)
    revoked = {line["key"] for line in found if line["mark"] == "revoked"}
    kept = (line for line in found if not line["mark"] and line["key"] not in revoked)
    return "".join(f"{line['names']} {line['kind']} {line['key']}\n" for line in kept)


def standing(text: str, host: str, port: int | None) -> str:
    """What is known of a host whose key was refused: unknown, changed or revoked."""
    name = host if port in (None, 22) else f"[{host}]:{port}"
    if any(_is_named(line["names"], name) for line in _lines(known_hosts(text))):
        return "changed"
    about = [line for line in _lines(text) if line["mark"] == "revoked" and _is_named(line["names"], name)]
    return "revoked" if about else "unknown"


def _lines(text: str) -> list[re.Match[str]]:
    return [match for line in text.splitlines() if (match := _LINE.match(line))]


def _is_named(names: str, host: str) -> bool:
    if names.startswith("|1|"):
        return _is_hash_of(names, host)
    patterns = names.lower().split(",")
    if any(fnmatch.fnmatchcase(host.lower(), _literal(name[1:])) for name in patterns if name.startswith("!")):
        return False
    return any(fnmatch.fnmatchcase(host.lower(), _literal(name)) for name in patterns)


def _literal(pattern: str) -> str:
    """Brackets stand for themselves there."""
    return pattern.replace("[", "[[]")


def _is_hash_of(hashed: str, host: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in hashed.removeprefix("|1|").split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, host.lower().encode(), hashlib.sha1).digest(), digest)
