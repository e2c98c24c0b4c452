"""Opens the encrypted templates of a fleet, each file once as long as neither it nor the identities change.

The age identities of this machine, read each time that they are needed, so that a renewed file is used at once.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyrage import x25519

from reconciler.api.content import Opened, Sealed
from reconciler.api.fleet import Template
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.errors import ConfigurationError
from reconciler.sops.attempts import Attempts, Told
from reconciler.sops.decrypt import NO_KEY, DecryptRefused, opened

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


class Keyring:
    """Decryption on this machine. Decrypted values stay in its memory, for files that are in the fleet."""

    def __init__(
        self,
        named: Path | None = None,
        environ: Mapping[str, str] | None = None,
        attempts: Attempts | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Use the identities of a file, else those of the credential `sops-age`, else none.

        `attempts`: asks the operator's sops about files for other keys than age; None: nothing is started. `wait_s`:
        the time to wait for that; later results are reported to listeners.
        """
        self._named = named
        self._attempts, self._wait_s = attempts, wait_s
        self._environ = os.environ if environ is None else environ
        self._known: dict[Sealed, Opened | DecryptRefused] = {}
        self._digest = b""
        self._recent: set[Sealed] = set()

    def check(self) -> None:
        """Read the identities once, before anything is begun.

        Raises:
            ConfigurationError: a file was named, and cannot be used.
        """
        self._identities()

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, Opened | Problem]:
        """The values of each encrypted template, or why there are none.

        `is_all`: these are all of the fleet, so that nothing else need be remembered.
        """
        sealed = [template for template in templates if template.sealed is not None]
        try:
            identities, fault = self._identities(), None
        except ConfigurationError as error:
            identities, fault = Identities(), str(error)
        if identities.digest != self._digest:
            self._known.clear()
            self.again()
            self._digest = identities.digest
        known: dict[Sealed, Opened | DecryptRefused] = {}
        for template in sealed:
            part = template.sealed
            assert part is not None, "these are encrypted"
            known[part] = known.get(part) or self._known.get(part) or opened(part, identities.keys)
        self._known = known if is_all else {**self._known, **known}
        if is_all and self._attempts is not None:
            # Older revisions that are in force are asked for after the newest, and must not be asked about anew.
            self._attempts.keep(self._recent | known.keys())
            self._recent.clear()
        self._recent |= known.keys()
        told = {**known, **self._answered(sealed, known)}
        found: dict[Identity, Opened | Problem] = {}
        for template in sealed:
            assert template.sealed is not None, "these are encrypted"
            made = told[template.sealed]
            found[template.identity] = _told(template, made, fault) if isinstance(made, DecryptRefused) else made
        return found

    def listen(self, told: Told) -> None:
        """Call this, from another thread, with objects of files that were answered after `open` returned."""
        if self._attempts is not None:
            self._attempts.listen(told)

    def again(self) -> None:
        """Try failed files again, at the next `open`."""
        if self._attempts is not None:
            self._attempts.again()

    def _answered(
        self, sealed: Iterable[Template], known: Mapping[Sealed, Opened | DecryptRefused]
    ) -> Mapping[Sealed, Opened | DecryptRefused]:
        """Return the results of the operator's sops for files that age alone does not decrypt."""
        if self._attempts is None:
            return {}
        wanted: dict[Sealed, set[Identity]] = {}
        for template in sealed:
            part = template.sealed
            assert part is not None, "these are encrypted"
            made = known[part]
            if isinstance(made, DecryptRefused) and made.code == NO_KEY and part.has_others:
                wanted.setdefault(part, set()).add(template.identity)
        return self._attempts.ask(wanted, self._wait_s) if wanted else {}

    def _identities(self) -> Identities:
        file = identities_file(self._named, self._environ)
        return read_identities(file, self._environ) if file is not None else Identities()


def _told(template: Template, why: DecryptRefused, fault: str | None) -> Problem:
    message = f"{fault}: {why.message}" if fault and why.code == NO_KEY else why.message
    return Problem(
        source=template.source,
        path="sops",
        code=why.code,
        message=f"{template.identity} stays as it is in all clusters: {message}",
    )
