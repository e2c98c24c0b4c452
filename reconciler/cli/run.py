"""`reconciler run`: follow the store and keep the clusters equal to it, as a service."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to, commits_of, journal_for, keyring_of
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.controller.service.serve_fleet import Service
    from reconciler.server.http_server import Listening

_SERVICE_S: Final = 2.0
"""A round of the service waits this long: most key services answer by then; later answers start another round."""
_POLL_MIN_S: Final = 0.1
_POLL_MAX_S: Final = 86_400.0


def _checked_poll(_ctx: object, _parameter: object, value: float) -> float:
    """A server is not asked without a pause; neither is "not a number" one."""
    if not _POLL_MIN_S <= value <= _POLL_MAX_S:
        raise click.BadParameter(f"{value} is not from {_POLL_MIN_S} to {_POLL_MAX_S}")
    return value


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.reach
@options.option("--cluster", "clusters", multiple=True,
                help="Apply to these clusters alone (repeatable). Default: to all but those with "
                     "`spec.syncMode: Pull`.")  # fmt: skip
@options.keys_options
@options.option("--poll", "poll_s", type=float, default=60.0, show_default=True,
                callback=_checked_poll,
                help="Seconds between looks at a Git URL or a tag of a registry.")  # fmt: skip
@options.option("--accept-rewinds", is_flag=True, help="Follow a branch that was rewritten (force-pushed).")
@options.option("--listen", default=None, metavar="HOST:PORT", help="Serve health, metrics and status there.")
@options.option("--listen-name", "listen_names", multiple=True, metavar="NAME",
                help="Answer to this host name as well there; localhost and addresses are always answered "
                     "to.")  # fmt: skip
@options.file_option("--listen-token-file",
                     help="File with a token that whoever asks there has to give. Default: the credential listen-token "
                          "of systemd.")  # fmt: skip
@options.option("--page-logs", is_flag=True,
                help="Show there the last lines of broken pods' logs to all who read the page; needs the right to get "
                     "pods/log.")  # fmt: skip
@options.file_option("--round-log", metavar="FILE",
                     help="Write there what each round took and planned, without values, so that it can be "
                          "replayed.")  # fmt: skip
@options.option("--prometheus", default=None, metavar="NAME=URL",
                help="Ask this Prometheus for metrics of gates where the Fleet document names it.")  # fmt: skip
@options.file_option("--prometheus-token-file",
                     help="The bearer token for it is in this file. Default: credential prometheus-token.")  # fmt: skip
@options.option("--log-format", type=click.Choice(["json", "text"]), default=None, help="Default: text on a terminal.")
@options.telling_options
def command(
    *,
    chosen: options.StoreChoice,
    reach: options.Reach,
    clusters: tuple[str, ...],
    keys: options.KeysNamed,
    poll_s: float,
    accept_rewinds: bool,
    listen: str | None,
    listen_names: tuple[str, ...],
    listen_token_file: Path | None,
    page_logs: bool,
    round_log: Path | None,
    prometheus: str | None,
    prometheus_token_file: Path | None,
    log_format: str | None,
    notify: options.NotifyOptions,
) -> None:
    """Follow STORE (directory, Git work tree, bare repository, URL or oci://) and keep the clusters equal to it."""
    from reconciler.cli.receivers import forge_of, prometheus_of, webhooks_of
    from reconciler.cli.store_reading import cache_folder, parse_cache_file
    from reconciler.controller.service.serve_fleet import Service
    from reconciler.controller.vitals.logs import set_up_logging
    from reconciler.server.http_server import Listening

    set_up_logging(log_format)
    file = reach.journal or _journal_of(chosen)
    keyring = keyring_of(keys._replace(wait_s=_SERVICE_S), chosen.store)
    access = access_to(reach._replace(journal=file), clusters, keys=keyring)
    # A service need not have a home, and always has a folder for its journal.
    folder = cache_folder() or file.parent
    service = Service(
        store=chosen.store,
        rev=chosen.rev,
        as_directory=chosen.as_directory,
        access=access,
        poll_s=poll_s,
        accept_rewinds=accept_rewinds,
        parse_cache=parse_cache_file(folder, chosen.store),
        round_log=round_log,
        prometheus=prometheus_of(prometheus, prometheus_token_file, allows_http=notify.allow_plain_http),
        webhooks=webhooks_of(notify),
        forge=forge_of(notify, chosen.store),
        commits=commits_of(chosen.store, beside=file),
    )
    listening = Listening(address=listen, names=listen_names, token_file=listen_token_file, page_logs=page_logs)
    asyncio.run(_run(service, listening))


def _journal_of(chosen: options.StoreChoice) -> Path:
    """Return the journal of the service's folder or its fleet. Raises ConfigurationError: no fleet, or another's."""
    from reconciler.cli.store_reading import full_name, read_fleet
    from reconciler.fleet import why_nameless
    from reconciler.journal.journal_rebuild import service_journal

    if service := service_journal(os.environ):
        return service
    fleet = read_fleet(*chosen, as_files=False)
    path = journal_for(fleet, os.environ, writes=full_name(chosen.store))
    if path is None:
        raise ConfigurationError(why_nameless(fleet))
    return path


async def _run(service: Service, listening: Listening) -> None:
    from reconciler.cli.receivers import forge_pages
    from reconciler.controller.service.serve_fleet import serve
    from reconciler.controller.service.signals import in_service, raise_descriptors
    from reconciler.controller.vitals.service_vitals import Vitals
    from reconciler.server.http_server import serving

    raise_descriptors()
    vitals = Vitals(source=service.store)
    vitals.commit_url, vitals.file_url = forge_pages(service.forge, service.store)
    clock = service.access.clock
    journal = service.access.journal
    assert journal is not None, "a service has a journal"
    async with (
        in_service(vitals, clock) as signals,
        serving(listening, vitals, clock, journal=journal, commits=service.commits, stop=signals.stop),
    ):
        await serve(service, vitals, signals)
