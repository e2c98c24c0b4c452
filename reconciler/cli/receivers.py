"""The receivers of what `run` tells, and the Prometheus that it asks: webhooks and a forge, as options name them."""

from __future__ import annotations

from pathlib import Path

from reconciler.api.ledger import EventKind
from reconciler.cli.options import NotifyOptions
from reconciler.cli.printing import remark
from reconciler.controller.rollouts.requests import PrometheusAddress
from reconciler.errors import ConfigurationError
from reconciler.notify.commit_statuses import ForgeKind, ForgeOptions, public_repository, repository_of
from reconciler.notify.post import addresses, checked_host
from reconciler.notify.webhook import WebhookOptions, keys_of
from reconciler.secret_files import credential_file, secret_text, token_in
from reconciler.store.git.url import is_git_url, parse_git_url


def webhooks_of(options: NotifyOptions) -> tuple[WebhookOptions, ...]:
    """Return the webhooks to tell. Raises ConfigurationError: an option is unusable, or lacks another."""
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
        remark("webhook requests are not signed: name a secret with --webhook-secret-file")
    elif receivers and secret is not None:
        keys_of(secret)
    return tuple(WebhookOptions(address=address, secret=secret, kinds=kinds) for address in receivers)


def forge_of(options: NotifyOptions, store: str) -> ForgeOptions | None:
    """Return the forge to tell; None: none was named. Raises ConfigurationError: an option is unusable."""
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
