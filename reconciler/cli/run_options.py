"""Options of several commands for decryption, and of `run` for notifications."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from reconciler.cli import options
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.api.content import DecryptedValues
    from reconciler.api.fleet import Template
    from reconciler.api.problem import Problem
    from reconciler.api.refs import Identity
    from reconciler.controller.rollouts.requests import PrometheusAddress
    from reconciler.notify.commit_statuses import ForgeOptions
    from reconciler.notify.webhook import WebhookOptions
    from reconciler.sops.keyring import Keyring
    from reconciler.sops.program import Program

PATIENT_S: Final = 120.0
"""A person's command waits this long for sops, since it makes exactly the plan that it shows."""
SERVICE_S: Final = 2.0
"""A round of the service waits this long: most key services answer by then; later answers start another round."""

_BINARY_OPTIONS: Final = (
    options.file_option("--sops-binary", metavar="PATH",
                   help="Open files for other keys than age with this sops, by absolute path. Default: no program is "
                        "started."),
    options.option("--sops-binary-sha256", default="", metavar="DIGEST", help="What --sops-binary must be."),
)  # fmt: skip
_OPTIONS: Final = (
    options.file_option("--sops-age-key-file",
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


keys_options = options.grouped("keys", KeysNamed, *_OPTIONS)
sops_binary_options = options.grouped("keys", KeysNamed, *_BINARY_OPTIONS)


class Keys:
    """Decryption, loaded on first use: most stores do not need it."""

    def __init__(self, named: KeysNamed, store: str = "") -> None:
        """Raise ConfigurationError if a file is unusable. `store`: no program may be in it; a folder or URL."""
        self._named, self._store = named, store
        self._listener: Callable[[Collection[Identity]], None] = lambda _: None
        self._loaded: Keyring | None = None
        if named.sops_age_key_file is not None or named.sops_binary is not None or named.sops_binary_sha256:
            self._keyring().check()

    def open(self, templates: Collection[Template], is_all: bool) -> Mapping[Identity, DecryptedValues | Problem]:
        """The values of each encrypted template, or why there are none."""
        return self._keyring().open(templates, is_all)

    def listen(self, listener: Callable[[Collection[Identity]], None]) -> None:
        """Call this with objects whose files were answered after `open` returned."""
        self._listener = listener
        if self._loaded is not None:
            self._loaded.listen(listener)

    def again(self) -> None:
        """Try again to decrypt values that failed."""
        if self._loaded is not None:
            self._loaded.again()

    def _keyring(self) -> Keyring:
        if self._loaded is None:
            from reconciler.sops.keyring import Attempts, Keyring

            named, program = self._named, program_named(self._named, self._store)
            attempts = Attempts(program) if program is not None else None
            self._loaded = Keyring(named.sops_age_key_file, attempts=attempts, wait_s=named.wait_s)
            self._loaded.listen(self._listener)
        return self._loaded


def program_named(named: KeysNamed, store: str) -> Program | None:
    """Return the sops that was named; None: none was. Raises ConfigurationError: it is unusable."""
    from reconciler.secret_files import credential_file
    from reconciler.sops.keyring import CREDENTIAL
    from reconciler.sops.program import program_of

    identities = credential_file(named.sops_age_key_file, CREDENTIAL)
    return program_of(named.sops_binary, named.sops_binary_sha256, os.environ, identities=identities, store=store)


_KINDS: Final = ("github", "gitlab", "gitea", "forgejo")

_TELLING_OPTIONS: Final = (
    options.option("--webhook", "webhooks", multiple=True, metavar="URL",
                   help="Tell this address each event of history, as CloudEvents. May be repeated."),
    options.file_option("--webhook-file", metavar="FILE",
                   help="Tell the addresses in this file too, one a line. Default: credential webhook."),
    options.file_option("--webhook-secret-file", metavar="FILE",
                   help="Sign what webhooks are told with this secret. Default: credential webhook-secret."),
    options.option("--webhook-events", default="", metavar="KINDS",
                   help="Only events of these kinds, with commas in between. Default: all."),
    options.option("--allow-plain-http", is_flag=True, help="Tell others over http:// as well, beyond this machine."),
    options.option("--forge-status", type=click.Choice(_KINDS), default=None, metavar="FORGE",
                   help="Set the status of the commit in force there: github, gitlab, gitea, forgejo."),
    options.option("--forge-repository", default="", metavar="OWNER/NAME",
                   help="The repository there. Default: that of STORE, if it is a URL."),
    options.option("--forge-api", default="", metavar="URL",
                   help="The address of its API. Default: at the host of STORE."),
    options.file_option("--forge-token-file",
                   help="The token for it is in this file. Default: credential forge-token."),
    options.option("--page-url", default="", metavar="URL",
                   help="Where people see the status page; the forge links it."),
)  # fmt: skip


class NotifyOptions(NamedTuple):
    """The options, as they were given."""

    webhooks: tuple[str, ...]
    webhook_file: Path | None
    webhook_secret_file: Path | None
    webhook_events: str
    allow_plain_http: bool
    forge_status: str | None
    forge_repository: str
    forge_api: str
    forge_token_file: Path | None
    page_url: str


telling_options = options.grouped("notify", NotifyOptions, *_TELLING_OPTIONS)


def webhooks_of(options: NotifyOptions) -> tuple[WebhookOptions, ...]:
    """Return the webhooks to tell. Raises ConfigurationError: an option is unusable, or lacks another."""
    from reconciler.api.ledger import EventKind
    from reconciler.cli.printing import remark
    from reconciler.notify.cloud_event import keys_in
    from reconciler.notify.post import addresses
    from reconciler.notify.webhook import WebhookOptions
    from reconciler.secret_files import credential_file, secret_text

    kinds = frozenset(name.strip() for name in options.webhook_events.split(",") if name.strip())
    unknown = sorted(kinds - set(map(str, EventKind)))
    if unknown:
        known = ", ".join(map(str, EventKind))
        raise ConfigurationError(f"--webhook-events: there is no event {unknown[0]!r}; there are {known}")
    file = credential_file(options.webhook_file, "webhook")
    in_file = secret_text(file, "--webhook-file").split() if file is not None else []
    receivers = addresses((*options.webhooks, *in_file), allows_http=options.allow_plain_http)
    secret = credential_file(options.webhook_secret_file, "webhook-secret")
    if receivers and secret is None:
        remark("what webhooks are told is not signed: name a secret with --webhook-secret-file")
    elif receivers and secret is not None:
        keys_in(secret_text(secret, "--webhook-secret-file"))
    return tuple(WebhookOptions(address=address, secret=secret, kinds=kinds) for address in receivers)


def forge_of(options: NotifyOptions, store: str) -> ForgeOptions | None:
    """Return the forge to tell; None: none was named. Raises ConfigurationError: an option is unusable."""
    from reconciler.notify.commit_statuses import ForgeKind, ForgeOptions, repository_of
    from reconciler.notify.post import checked_host
    from reconciler.secret_files import credential_file, token_in
    from reconciler.store.git.url import is_git_url, parse_git_url

    if options.forge_status is None:
        return None
    url = parse_git_url(store) if is_git_url(store) else None
    if url is not None and url.is_artifact:
        raise ConfigurationError("--forge-status sets the status of a commit, and STORE is an artifact of a registry")
    kind = ForgeKind.GITEA if options.forge_status == "forgejo" else ForgeKind(options.forge_status)
    repository = repository_of(
        kind,
        host=url.host if url is not None else "",
        path=url.path if url is not None else "",
        repository=options.forge_repository,
        api=options.forge_api,
    )
    checked_host(repository.api, allows_http=options.allow_plain_http, option="--forge-api")
    if options.page_url:
        checked_host(options.page_url, allows_http=True, option="--page-url")
    token = credential_file(options.forge_token_file, "forge-token")
    if token is None:
        raise ConfigurationError("--forge-status needs a token: name its file with --forge-token-file")
    token_in(token, "--forge-token-file")
    return ForgeOptions(repository=repository, token=token, page_url=options.page_url)


def forge_pages(forge: ForgeOptions | None, store: str) -> tuple[str, str]:
    """Return where the forge shows commits and files of the store, as `Repository.pages`; empty: not known."""
    from reconciler.notify.commit_statuses import public_repository
    from reconciler.store.git.url import is_git_url, parse_git_url

    url = parse_git_url(store) if is_git_url(store) else None
    subdir = url.subdir if url is not None else ""
    if forge is not None:
        return forge.repository.pages(subdir)
    try:
        repository = public_repository(url.host, url.path) if url is not None else None
    except ConfigurationError:
        repository = None  # The URL has no OWNER/NAME.
    return repository.pages(subdir) if repository is not None else ("", "")


def prometheus_of(option: str | None, token: Path | None, *, allows_http: bool) -> PrometheusAddress | None:
    """Return the Prometheus that gates ask; None: none was named. Raises ConfigurationError: it is unusable."""
    from reconciler.controller.rollouts.requests import PrometheusAddress
    from reconciler.notify.post import checked_host
    from reconciler.secret_files import credential_file, token_in

    if option is None:
        return None
    name, _, url = option.partition("=")
    if not name or not name.isprintable():
        raise ConfigurationError("--prometheus: write NAME=URL, with the name that the Fleet document has")
    checked_host(url, allows_http=allows_http, option="--prometheus")
    file = credential_file(token, "prometheus-token")
    if file is not None:
        token_in(file, "--prometheus-token-file")
    return PrometheusAddress(name=name, url=url, token=file)
