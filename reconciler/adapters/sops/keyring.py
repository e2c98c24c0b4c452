"""Opens the encrypted templates of a fleet, each file once as long as neither it nor the identities change."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from reconciler.adapters.sops.attempts import Attempts, Told
from reconciler.adapters.sops.identities import Identities, identities_file, read_identities
from reconciler.adapters.sops.opening import NO_KEY, Refused, opened
from reconciler.errors import ConfigurationError
from reconciler.model.content import Opened, Sealed
from reconciler.model.fleet import Template
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity


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
        self._known: dict[Sealed, Opened | Refused] = {}
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
        known: dict[Sealed, Opened | Refused] = {}
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
            found[template.identity] = _told(template, made, fault) if isinstance(made, Refused) else made
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
        self, sealed: Iterable[Template], known: Mapping[Sealed, Opened | Refused]
    ) -> Mapping[Sealed, Opened | Refused]:
        """Return the results of the operator's sops for files that age alone does not decrypt."""
        if self._attempts is None:
            return {}
        wanted: dict[Sealed, set[Identity]] = {}
        for template in sealed:
            part = template.sealed
            assert part is not None, "these are encrypted"
            made = known[part]
            if isinstance(made, Refused) and made.code == NO_KEY and part.has_others:
                wanted.setdefault(part, set()).add(template.identity)
        return self._attempts.ask(wanted, self._wait_s) if wanted else {}

    def _identities(self) -> Identities:
        file = identities_file(self._named, self._environ)
        return read_identities(file, self._environ) if file is not None else Identities()


def _told(template: Template, why: Refused, fault: str | None) -> Problem:
    message = f"{fault}: {why.message}" if fault and why.code == NO_KEY else why.message
    return Problem(
        source=template.source,
        path="sops",
        code=why.code,
        message=f"{template.identity} stays as it is in all clusters: {message}",
    )
