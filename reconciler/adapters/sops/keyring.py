"""Opens the encrypted templates of a fleet, each file once as long as neither it nor the identities change."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from reconciler.adapters.sops.identities import Identities, identities_file, read_identities
from reconciler.adapters.sops.opening import NO_KEY, Refused, opened
from reconciler.errors import ConfigurationError
from reconciler.model.content import Opened, Sealed
from reconciler.model.fleet import Template
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity


class Keyring:
    """What a machine can open. Decrypted values stay in its memory, for files that are in the fleet."""

    def __init__(self, named: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        """Open with the identities of a file, else with those of the credential `sops-age`, else nothing."""
        self._named = named
        self._environ = os.environ if environ is None else environ
        self._known: dict[Sealed, Opened | Refused] = {}
        self._digest = b""

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
            self._digest = identities.digest
        known: dict[Sealed, Opened | Refused] = {}
        found: dict[Identity, Opened | Problem] = {}
        for template in sealed:
            part = template.sealed
            assert part is not None, "these are encrypted"
            made = known.get(part) or self._known.get(part) or opened(part, identities.keys)
            known[part] = made
            found[template.identity] = _told(template, made, fault) if isinstance(made, Refused) else made
        self._known = known if is_all else {**self._known, **known}
        return found

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
