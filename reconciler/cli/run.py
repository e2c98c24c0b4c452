"""`reconciler run`: follow the store and keep the clusters equal to it, as a service."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.access import access_to


@click.command()
@options.store_argument
@options.rev
@options.as_directory
@options.kubeconfig
@options.journal
@options.option("--poll", "poll_s", type=float, default=60.0, show_default=True, help="Seconds between looks at a Git URL.")
@options.option("--accept-rewinds", is_flag=True, help="Follow a branch that was rewritten (force-pushed).")
@options.option("--listen", default=None, metavar="HOST:PORT", help="Serve health, metrics and status there.")
@options.option("--log-format", type=click.Choice(["json", "text"]), default=None, help="Default: text on a terminal.")
def command(
    *,
    store: str,
    rev: str | None,
    as_directory: bool,
    kubeconfig: Path | None,
    journal: Path | None,
    poll_s: float,
    accept_rewinds: bool,
    listen: str | None,
    log_format: str | None,
) -> None:
    """Follow STORE (directory, Git work tree, bare repository or Git URL) and keep the clusters equal to it."""
    from reconciler.daemon.serve import Service, serve

    service = Service(
        store=store,
        rev=rev,
        as_directory=as_directory,
        access=access_to(kubeconfig, journal),
        poll_s=poll_s,
        accept_rewinds=accept_rewinds,
        listen=listen,
        log_format=log_format,
    )
    asyncio.run(serve(service))
