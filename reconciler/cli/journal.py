"""`reconciler journal`: verify, rebuild, export or compact the journal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to, journal_path
from reconciler.cli.printing import answer, document_pieces, document_text, remark, run
from reconciler.errors import JournalCorrupt, JournalError


@click.group(context_settings=options.SETTINGS)
def command() -> None:
    """Verify, rebuild, export or compact the journal."""


@command.command(context_settings=options.SETTINGS)
@options.store_of_fleet
@options.journal
@options.output("text", "json", "yaml", default="text")
def verify(*, store: str | None, journal: Path | None, output: str) -> None:
    """Check every page and row of the journal, also while a daemon writes it. Exit code 1 when anything is wrong."""
    from reconciler.journal.sqlite_journal import Journal

    path = journal_path(journal, store)
    try:
        with Journal.open(path, read_only=True) as opened:
            findings = opened.verify()
    except JournalCorrupt as error:
        findings = (str(error),)
    if output != "text":
        answer(document_text({"version": 1, "journal": str(path), "findings": list(findings)}, output))
    else:
        answer("\n".join(findings) if findings else f"{path}: sound")
    if findings:
        remark("next: 'reconciler journal rebuild STORE' keeps the file aside and builds a new one")
    sys.exit(1 if findings else 0)


@command.command(context_settings=options.SETTINGS)
@options.store_choice
@options.kubeconfig
@options.journal
@options.cluster_filter
@options.option("--takeover", is_flag=True, help="Take the fleet over from the journal that holds it now.")
def rebuild(
    *,
    chosen: options.StoreChoice,
    kubeconfig: Path | None,
    journal: Path | None,
    clusters: tuple[str, ...],
    takeover: bool,
) -> None:
    """Build the journal again from the marks in the clusters of STORE.

    With --cluster, only these clusters are recorded again in a sound journal, as after a restored backup.

    Clusters are not changed, except for the holder with --takeover. Nothing is deleted before one complete round has
    been recorded.
    """
    from reconciler.cli.store_reading import check_clusters, full_name, read_fleet
    from reconciler.controller.once.applying import rebuild_once

    fleet = read_fleet(*chosen, as_files=False)
    check_clusters(clusters, fleet)
    reach = options.Reach(kubeconfig, journal=journal)
    access = access_to(reach, clusters, fleet=fleet, store=full_name(chosen.store))
    rebuilt = run(rebuild_once(fleet, access, take_over=takeover))
    if rebuilt.set_aside is not None:
        remark(f"the broken journal is kept as {rebuilt.set_aside}")
    for lost in rebuilt.lost:
        remark(f"lost: {lost}")
    for cluster, count in sorted(rebuilt.objects.items()):
        answer(f"{cluster}: {count} objects of ours")
    for cluster, why in sorted(rebuilt.failed.items()):
        remark(f"{cluster}: not read: {why}")
    for cluster, holder in sorted(rebuilt.held_by.items()):
        remark(f"{cluster}: held by {holder}; 'reconciler journal rebuild --takeover' takes the fleet over")
    if rebuilt.is_stock:
        remark("stock was taken of these clusters alone; everything else is recorded as before")
    else:
        remark(f"{rebuilt.placements} placements; timers and exclusions begin again")
    if rebuilt.failed:
        remark("next: run it again when every cluster answers, or what is no longer wanted there is not deleted")
    sys.exit(1 if rebuilt.failed or rebuilt.held_by else 0)


@command.command(context_settings=options.SETTINGS)
@options.store_of_fleet
@options.journal
@options.output("json", "yaml", default="json")
def export(*, store: str | None, journal: Path | None, output: str) -> None:
    """Print the whole journal, also while a daemon writes it. It holds no Secret value."""
    from reconciler.journal.sqlite_journal import Journal
    from reconciler.report.mask import Masker

    masker = Masker()
    with Journal.open(journal_path(journal, store), read_only=True) as opened, opened.transaction():
        # Credentials also occur in wrong places: in URLs of an env, in ConfigMaps.
        document = {name: map(masker.document, pieces) for name, pieces in opened.export().items()}
        for text in document_pieces(document, output):
            click.echo(text, nl=False)


@command.command(context_settings=options.SETTINGS)
@options.store_of_fleet
@options.journal
def compact(*, store: str | None, journal: Path | None) -> None:
    """Delete what is beyond `spec.history`, and give the space of deleted rows back. No service may be running.

    Meanwhile as much free disk is needed as the journal takes then.
    """
    from reconciler.clock import SystemClock
    from reconciler.journal.sqlite_journal import Journal

    path = journal_path(journal, store)
    if not path.is_file():
        raise JournalError(f"{path}: there is no journal")
    size = path.stat().st_size
    with Journal.open(path) as opened:
        opened.compact(SystemClock().now())
    before, now = (f"{count / 2**20:.1f} MiB" for count in (size, path.stat().st_size))
    answer(f"{path}: {before} before, {now} now")
