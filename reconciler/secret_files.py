"""Secret files: the one reader of files that hold a token, a key, a passphrase or a kubeconfig.

They are read each time that they are needed, so that a renewed one is used at once. No message quotes their content.

Source: systemd.exec, "Credentials"; Kubernetes, "Secrets", "Using Secrets as files from a Pod": the kubelet mounts each
key with mode 0644 as a link into the folder `..data`.
"""

from __future__ import annotations

import errno
import os
import stat
from codecs import BOM_UTF8
from collections.abc import Hashable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from reconciler.errors import ConfigurationError
from reconciler.regex import regex

SECRET_BYTES_MAX: Final = 65_536
_TOKEN: Final = regex(r"[\x21-\x7e]+")
_REMEDIES: Final = {
    errno.EACCES: "let user {user} read it, and enter the folders above it",
    errno.EISDIR: "name a file",
    errno.ENOENT: "put it there, or name the right file",
}


def credential_file(named: Path | None, credential: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file that was named, else the file of that name in `$CREDENTIALS_DIRECTORY`; None: there is neither."""
    if named is not None:
        return named
    folder = environ.get("CREDENTIALS_DIRECTORY")
    path = Path(folder) / credential if folder else None
    return path if path is not None and path.is_file() else None


def read_secret_file(
    path: Path,
    what: str,
    environ: Mapping[str, str] = os.environ,
    *,
    bytes_max: int = SECRET_BYTES_MAX,
    is_private: bool = True,
    remedy: str = "write the secret into it",
) -> bytes:
    """Return the content of a file. `what`: the option or variable that names it, for messages.

    `is_private`: refuse a file that others can read or own; not so for one whose content decides about that.

    Raises ConfigurationError: it cannot be read, is no file, is too large, or is not private or empty: an empty key
    would switch off what it is for.
    """
    try:
        # A pipe that nobody writes to would otherwise block.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            is_file = stat.S_ISREG(status.st_mode) or stat.S_ISCHR(status.st_mode)  # a device: /dev/null
            fault = _privacy_fault(path, status, environ) if is_private else ""
            fault = fault if is_file else "it is a folder, pipe or socket; name a file"
            data = b"" if fault else file.read(bytes_max + 1)
    except OSError as error:
        raise ConfigurationError(f"{what} {why_not_read(path, error)}") from error
    if fault:
        raise ConfigurationError(f"{what} {path}: {fault}")
    if len(data) > bytes_max:
        raise ConfigurationError(f"{what} {path}: it is larger than {bytes_max:,} bytes; is it the right file?")
    if is_private and not data.removeprefix(BOM_UTF8).strip():
        raise ConfigurationError(f"{what} {path}: it is empty; {remedy}")
    return data


def file_stamp(path: Path | None) -> Hashable:
    """Return another value once a file was written, exchanged, or given other rights."""
    try:
        status = (path or Path(os.devnull)).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def why_not_read(path: Path, error: OSError) -> str:
    """Return that a file cannot be read, why, and the remedy."""
    remedy = _REMEDIES.get(error.errno or 0, "fix that").format(user=os.geteuid())
    return f"{path} cannot be read: {error.strerror}; {remedy}"


def secret_text(path: Path, what: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the text of a file, without blanks around it.

    Raises ConfigurationError: as `read_secret_file`; or it is no text.
    """
    try:
        return read_secret_file(path, what, environ).decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{what} {path}: it is no text (UTF-8); write it again") from None


def token_in(
    path: Path, what: str, environ: Mapping[str, str] = os.environ, *, is_private: bool = True, max_length: int = 4096
) -> str:
    """Return the token in a file: one line of letters, digits and signs, which fits into a header.

    Raises ConfigurationError: as `read_secret_file`; or it holds no token.
    """
    data = read_secret_file(path, what, environ, is_private=is_private)
    text = data.decode("utf-8-sig", errors="replace").strip()
    if len(text) > max_length or _TOKEN.fullmatch(text) is None:
        raise ConfigurationError(
            f"{what} {path}: a token is one line of at most {max_length:,} letters, digits and signs"
        )
    return text


def privacy_fault(path: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return why a file that was read is not private, with the remedy; empty: it is, or is gone by now."""
    try:
        return _privacy_fault(path, path.stat(), environ)
    except OSError:
        return ""


def _privacy_fault(path: Path, status: os.stat_result, environ: Mapping[str, str]) -> str:
    if is_mounted_for_us(path, environ):
        return ""
    if status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        verb = "read" if status.st_mode & stat.S_IROTH else "change"
        return f"everybody on this machine can {verb} it; chmod 600 {path}"
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to user {status.st_uid}, who can change it; chown {os.geteuid()} {path}"
    return ""


def is_mounted_for_us(path: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the file is in a folder made for this process alone: there modes mean nothing.

    That is the folder of credentials, and a volume of a pod, whose files are links into `..data`.
    """
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if folder and path.parent == Path(folder):
        return True
    return path.is_symlink() and path.readlink().parts[:1] == ("..data",)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
