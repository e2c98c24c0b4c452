"""Options of `run` for notifications: webhooks, and a forge."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from reconciler.cli import options
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.adapters.notify.statuses import ForgeOptions
    from reconciler.adapters.notify.webhook import WebhookOptions
    from reconciler.daemon.service.telling import Telling

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_KINDS: Final = ("github", "gitlab", "gitea", "forgejo")

_OPTIONS: Final = (
    options.option("--webhook", "webhooks", multiple=True, metavar="URL",
                   help="Tell this address each event of history, as CloudEvents. May be repeated."),
    options.option("--webhook-secret-file", type=_FILE, default=None, metavar="FILE",
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
    options.option("--forge-token-file", type=_FILE, default=None,
                   help="The token for it is in this file. Default: credential forge-token."),
    options.option("--page-url", default="", metavar="URL",
                   help="Where people see the status page; the forge links it."),
)  # fmt: skip


class Asked(NamedTuple):
    """The options, as they were given."""

    webhooks: tuple[str, ...]
    webhook_secret_file: Path | None
    webhook_events: str
    allow_plain_http: bool
    forge_status: str | None
    forge_repository: str
    forge_api: str
    forge_token_file: Path | None
    page_url: str


def telling_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them as one parameter `asked`."""

    @functools.wraps(function)
    def command(**given: Any) -> Any:
        asked = Asked(**{name: given.pop(name) for name in Asked._fields})
        return function(**given, asked=asked)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def telling_of(asked: Asked, store: str, journal: Path) -> Telling | None:
    """Return the notification targets; None: there are none.

    Raises:
        ConfigurationError: an option cannot be used, or one is missing beside another.
    """
    from reconciler.cli.commits import commits_of
    from reconciler.daemon.service.telling import Telling

    webhooks, forge = _webhooks(asked), _forge(asked, store)
    if not webhooks and forge is None:
        return None
    return Telling(webhooks=webhooks, forge=forge, words=commits_of(store, beside=journal).words)


def _webhooks(asked: Asked) -> tuple[WebhookOptions, ...]:
    from reconciler.adapters.notify.address import addresses
    from reconciler.adapters.notify.secret_files import read_secret, secret_file
    from reconciler.adapters.notify.webhook import WebhookOptions
    from reconciler.cli.printing import remark
    from reconciler.model.ledger import EventKind
    from reconciler.report.notify.signature import keys_in

    kinds = frozenset(name.strip() for name in asked.webhook_events.split(",") if name.strip())
    unknown = sorted(kinds - set(map(str, EventKind)))
    if unknown:
        known = ", ".join(map(str, EventKind))
        raise ConfigurationError(f"--webhook-events: there is no event {unknown[0]!r}; there are {known}")
    found = addresses(asked.webhooks, allows_http=asked.allow_plain_http)
    secret = secret_file(asked.webhook_secret_file, "webhook-secret", os.environ)
    if found and secret is None:
        remark("what webhooks are told is not signed: name a secret with --webhook-secret-file")
    elif found and secret is not None:
        keys_in(read_secret(secret))
    return tuple(WebhookOptions(address=address, secret=secret, kinds=kinds) for address in found)


def _forge(asked: Asked, store: str) -> ForgeOptions | None:
    from reconciler.adapters.forge.statuses import ForgeKind, repository_of
    from reconciler.adapters.git.url import is_git_url, parse_git_url
    from reconciler.adapters.notify.address import checked_host
    from reconciler.adapters.notify.secret_files import read_secret, secret_file
    from reconciler.adapters.notify.statuses import ForgeOptions

    if asked.forge_status is None:
        return None
    url = parse_git_url(store) if is_git_url(store) else None
    kind = ForgeKind.GITEA if asked.forge_status == "forgejo" else ForgeKind(asked.forge_status)
    repository = repository_of(
        kind,
        host=url.host if url is not None else "",
        path=url.path if url is not None else "",
        repository=asked.forge_repository,
        api=asked.forge_api,
    )
    checked_host(repository.api, allows_http=asked.allow_plain_http, option="--forge-api")
    if asked.page_url:
        checked_host(asked.page_url, allows_http=True, option="--page-url")
    token = secret_file(asked.forge_token_file, "forge-token", os.environ)
    if token is None:
        raise ConfigurationError("--forge-status needs a token: name its file with --forge-token-file")
    read_secret(token)
    return ForgeOptions(repository=repository, token=token, page_url=asked.page_url)
