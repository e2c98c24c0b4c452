"""Secrets in files, read each time that they are needed, so that a renewed one is used at once.

Source: systemd.exec, "Credentials": `LoadCredential=` puts files into `$CREDENTIALS_DIRECTORY`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.errors import ConfigurationError

_BYTES_MAX: Final = 65_536


def secret_file(named: Path | None, credential: str, environ: Mapping[str, str]) -> Path | None:
    """The file that was named, else the credential of that name; None: there is neither."""
    if named is not None:
        return named
    folder = environ.get("CREDENTIALS_DIRECTORY")
    found = Path(folder) / credential if folder else None
    return found if found is not None and found.is_file() else None


def read_secret(path: Path) -> str:
    """Return the content of the file, without blanks around it.

    Raises:
        ConfigurationError: it cannot be read, or is empty.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX).decode("utf-8", errors="replace").strip()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}; it was named to tell others") from error
    if not text:
        raise ConfigurationError(f"{path}: it is empty; it was named to tell others")
    return text
