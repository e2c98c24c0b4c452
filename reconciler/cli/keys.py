"""Options for decrypting values of encrypted templates: age here, or the operator's sops."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.adapters.sops.keyring import Keyring
    from reconciler.adapters.sops.program import Program
    from reconciler.model.content import Opened
    from reconciler.model.fleet import Template
    from reconciler.model.problem import Problem
    from reconciler.model.refs import Identity

_FILE: Final = click.Path(path_type=Path, dir_okay=False)

PATIENT_S: Final = 120.0
"""A person's command waits this long for sops, since it makes exactly the plan that it shows."""
SERVICE_S: Final = 2.0
"""A round of the service waits this long: most key services answer by then; later answers start another round."""

_BINARY_OPTIONS: Final = (
    options.option("--sops-binary", type=_FILE, default=None, metavar="PATH",
                   help="Open files for other keys than age with this sops, by absolute path. Default: no program is "
                        "started."),
    options.option("--sops-binary-sha256", default="", metavar="DIGEST", help="What --sops-binary must be."),
)  # fmt: skip
_OPTIONS: Final = (
    options.option("--sops-age-key-file", type=_FILE, default=None,
                   help="File with age identities that open what sops encrypted. Default: the credential sops-age of "
                        "systemd."),
    *_BINARY_OPTIONS,
)  # fmt: skip


class KeysNamed(NamedTuple):
    """The options, as they were given. `wait_s`: for so long a command waits for the sops that was named."""

    sops_age_key_file: Path | None = None
    sops_binary: Path | None = None
    sops_binary_sha256: str = ""
    wait_s: float = PATIENT_S


def keys_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them as one parameter `keys`."""
    return _as_one(function, _OPTIONS)


def sops_binary_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same of those that name a sops alone."""
    return _as_one(function, _BINARY_OPTIONS)


def _as_one(function: Callable[..., Any], wanted: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    @functools.wraps(function)
    def command(**given: Any) -> Any:
        keys = KeysNamed(**{name: given.pop(name) for name in KeysNamed._fields if name in given})
        return function(**given, keys=keys)

    for option in reversed(wanted):
        command = option(command)
    return command


class Keys:
    """Decryption, loaded on first use: most stores do not need it."""

    def __init__(self, named: KeysNamed, store: str = "") -> None:
        """Check the named files. `store`: the folder that no program may be in, or a URL.

        Raises:
            ConfigurationError: the file of identities, or the program, is unusable.
        """
        self._named, self._store = named, store
        self._told: Callable[[Collection[Identity]], None] = lambda _: None
        self._made: Keyring | None = None
        if named.sops_age_key_file is not None or named.sops_binary is not None or named.sops_binary_sha256:
            self._keyring().check()

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, Opened | Problem]:
        """The values of each encrypted template, or why there are none."""
        return self._keyring().open(templates, is_all)

    def listen(self, told: Callable[[Collection[Identity]], None]) -> None:
        """Call this with objects whose files were answered after `open` returned."""
        self._told = told
        if self._made is not None:
            self._made.listen(told)

    def again(self) -> None:
        """Try again to decrypt values that failed."""
        if self._made is not None:
            self._made.again()

    def _keyring(self) -> Keyring:
        if self._made is None:
            from reconciler.adapters.sops.attempts import Attempts
            from reconciler.adapters.sops.keyring import Keyring

            named, program = self._named, program_named(self._named, self._store)
            attempts = Attempts(program) if program is not None else None
            self._made = Keyring(named.sops_age_key_file, attempts=attempts, wait_s=named.wait_s)
            self._made.listen(self._told)
        return self._made


def program_named(named: KeysNamed, store: str) -> Program | None:
    """The sops that was named; None: none was.

    Raises:
        ConfigurationError: it is unusable.
    """
    from reconciler.adapters.sops.identities import identities_file
    from reconciler.adapters.sops.program import program_of

    identities = identities_file(named.sops_age_key_file, os.environ)
    return program_of(named.sops_binary, named.sops_binary_sha256, os.environ, identities=identities, store=store)
