"""The age identities of this machine, read each time that they are needed, so that a renewed file is used at once."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyrage import x25519

from reconciler.errors import ConfigurationError

CREDENTIAL: Final = "sops-age"
"""The name of the file among the credentials of a systemd service."""
_OPTION: Final = "--sops-age-key-file"
_BYTES_MAX: Final = 65_536
_BEGIN: Final = "AGE-SECRET-KEY-1"


class Identities(NamedTuple):
    """Identities of a file, and a digest of its content. `digest` is of secrets: it stays in memory."""

    keys: tuple[Any, ...] = ()
    digest: bytes = b""


def identities_file(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file that was named, else the credential `sops-age`; None: there is neither."""
    if named is not None:
        return named
    folder = environ.get("CREDENTIALS_DIRECTORY")
    found = Path(folder) / CREDENTIAL if folder else None
    return found if found is not None and found.is_file() else None


def read_identities(file: Path, environ: Mapping[str, str]) -> Identities:
    """The identities of a file as `age-keygen` writes it: one a line, lines with # are comments.

    Raises:
        ConfigurationError: it cannot be read, everybody can read it, or a line is no identity. No message quotes it.
    """
    try:
        with file.open("rb") as opened:
            mode, data = file.stat().st_mode, opened.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(f"{_OPTION} {file}: {error.strerror}") from error
    # A folder of credentials is closed by itself, whatever the modes in it: Kubernetes mounts Secrets as 644.
    is_apart = str(file.parent) == environ.get("CREDENTIALS_DIRECTORY")
    if mode & stat.S_IROTH and not is_apart:
        raise ConfigurationError(f"{_OPTION} {file}: everybody on this machine can read it; chmod 600 {file}")
    if len(data) > _BYTES_MAX:
        raise ConfigurationError(f"{_OPTION} {file}: it is larger than {_BYTES_MAX:,} bytes")
    keys = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            keys.append(_identity(text, f"{_OPTION} {file}:{number}"))
    if not keys:
        raise ConfigurationError(f"{_OPTION} {file}: it holds no identity; `age-keygen` makes one")
    return Identities(tuple(keys), hashlib.sha256(data).digest())


def _identity(text: str, where: str) -> Any:
    if not text.startswith(_BEGIN):
        raise ConfigurationError(f"{where}: no identity of age; one begins with {_BEGIN}, others are not known here")
    try:
        return x25519.Identity.from_str(text)
    except Exception:
        raise ConfigurationError(f"{where}: an identity that is cut off, or changed") from None
