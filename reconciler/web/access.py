"""Access control: by the Host header and by the token."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from reconciler.errors import ConfigurationError

CREDENTIAL: Final = "listen-token"
"""The name of the token among the credentials of a systemd service."""
_TOKEN_MAX: Final = 4096
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:/@\s]+))(?::[0-9]*)?")


def is_for_us(hosts: Sequence[str], names: Collection[str]) -> bool:
    """Return whether the Host headers name this server.

    An IP address does: its caller was not led here by a name. So does a request that names no host (HTTP/1.0).

    >>> is_for_us(["127.0.0.1:9180"], ()), is_for_us(["[::1]"], ()), is_for_us(["rebound.example"], ())
    (True, True, False)
    """
    if len(hosts) > 1:
        return False
    if not hosts or not hosts[0]:
        return True
    match = _HOST.fullmatch(hosts[0].lower())
    name = (match["address"] or match["name"].rstrip(".")) if match is not None else ""
    return name == "localhost" or name in names or _is_address(name)


def has_token(given: Sequence[str], token: str) -> bool:
    """Return whether the Authorization headers carry the token: as Bearer, or as the password of Basic with any user.

    The comparison takes constant time. Source: RFC 6750, 2.1; RFC 7617.
    """
    if len(given) != 1:
        return False
    scheme, _, value = given[0].strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode("utf-8", errors="replace").partition(":")[2]
        except binascii.Error:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(value.encode(errors="replace"), token.encode())


def token_file(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file of the token: the named one, else that of systemd's credentials; None: neither."""
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if named is None and folder and (Path(folder) / CREDENTIAL).is_file():
        return Path(folder) / CREDENTIAL
    return named


def read_token(file: Path, option: str, environ: Mapping[str, str]) -> str:
    """The token in a file: one line without spaces.

    Raises:
        ConfigurationError: it cannot be read, everybody can read it, or it holds no token. No message quotes it.
    """
    try:
        with file.open("rb") as opened:
            mode, data = file.stat().st_mode, opened.read(_TOKEN_MAX + 1)
    except OSError as error:
        raise ConfigurationError(f"{option} {file}: {error.strerror}") from error
    # A folder of credentials is closed by itself, whatever the modes in it: Kubernetes mounts Secrets as 644.
    is_apart = str(file.parent) == environ.get("CREDENTIALS_DIRECTORY")
    if mode & stat.S_IROTH and not is_apart:
        raise ConfigurationError(f"{option} {file}: everybody on this machine can read it; chmod 600 {file}")
    text = data.decode("utf-8", errors="replace").strip()
    if not text:
        raise ConfigurationError(f"{option} {file}: it is empty; `openssl rand -hex 32` makes a token")
    if len(data) > _TOKEN_MAX or _TOKEN.fullmatch(text) is None:
        raise ConfigurationError(
            f"{option} {file}: a token is one line of at most {_TOKEN_MAX} letters, digits and signs"
        )
    return text


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
