"""From options to access: kubeconfig, keys, commits, the journal (by default of the fleet around), or a service."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from reconciler.cli.options import KeysNamed, Reach, file_option, grouped, option, person
from reconciler.errors import ConfigurationError, JournalError

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet
    from reconciler.cli.remote import RemoteService
    from reconciler.controller.once.planning import Access
    from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce
    from reconciler.report.views.queries import HistoryQuery
    from reconciler.sops.keyring import Keyring
    from reconciler.sops.program import Program
    from reconciler.store.source import Commits


def keyring_of(named: KeysNamed, store: str = "") -> Keyring:
    """Return the decryption. `store`: no program may be in it. Raises ConfigurationError: what is named is unusable."""
    from reconciler.sops.keyring import Attempts, Keyring

    program = program_named(named, store)
    attempts = Attempts(program) if program is not None else None
    keyring = Keyring(named.sops_age_key_file, attempts=attempts, wait_s=named.wait_s)
    if named.sops_age_key_file is not None or program is not None:
        keyring.identities()
    return keyring


def program_named(named: KeysNamed, store: str) -> Program | None:
    """Return the sops that was named; None: none was. Raises ConfigurationError: it is unusable."""
    from reconciler.secret_files import credential_file
    from reconciler.sops.keyring import CREDENTIAL
    from reconciler.sops.program import program_of

    identities = credential_file(named.sops_age_key_file, CREDENTIAL)
    return program_of(named.sops_binary, named.sops_binary_sha256, os.environ, identities=identities, store=store)


def access_to(
    reach: Reach,
    clusters: tuple[str, ...] = (),
    *,
    fleet: Fleet | None = None,
    store: str = "",
    revisions: RevisionsInForce | None = None,
    stage: str = "",
    keys: Keyring | None = None,
) -> Access:
    """Return the access. `store`: of commands that write. `keys` None: the credential of the service alone.

    Raises ConfigurationError: an unusable plugin, or another fleet's store; JournalError: no state folder is known.
    """
    import logging

    from reconciler.controller.cluster_reads.clusters_needed import ClusterFilter
    from reconciler.controller.once.planning import Access
    from reconciler.controller.vitals.logs import set_up_logging
    from reconciler.plugins import with_plugins

    live = None
    if reach.profiles is not None:
        from reconciler.kube.profile_access import LiveAccess

        live = LiveAccess(*reach.profiles, reach.kubeconfig)
    if not logging.getLogger().handlers:
        # Commentary goes to stderr, scrubbed like the service's log.
        set_up_logging("text")
    return Access(
        interpreters=with_plugins(),
        kubeconfig=reach.kubeconfig,
        journal=reach.journal or (journal_for(fleet, os.environ, writes=store) if fleet is not None else None),
        clusters=ClusterFilter(clusters),
        store=store,
        keys=keys or keyring_of(KeysNamed()),
        who=person(),
        revisions=revisions,
        stage=stage,
        profiles=live,
    )


def journal_path(journal: Path | None, store: str | None = None) -> Path:
    """Return the named journal, else the store's fleet's, else the folder's. Raises JournalError: there is none."""
    if journal is not None:
        return journal
    from reconciler.cli.store_reading import read_fleet
    from reconciler.fleet import why_nameless

    if store is None:
        return journal_of_folder(Path.cwd(), os.environ)
    fleet = read_fleet(store)
    path = journal_for(fleet, os.environ)
    if path is None:
        raise ConfigurationError(f"{store}: {why_nameless(fleet)}; or name a journal with --journal")
    return path


def journal_for(fleet: Fleet, environ: Mapping[str, str], *, writes: str = "") -> Path | None:
    """Return the journal of a store's fleet; None: unnamed. `writes`: the store; another fleet's before is an error."""
    from reconciler.journal.journal_rebuild import journal_of, known_journals, service_journal, source_of

    settings = fleet.settings
    if not settings.name:
        return service_journal(environ)
    path = journal_of(settings.name, settings.previous_names, environ)
    if writes and not path.exists() and not service_journal(environ):
        # Under a new name all running objects would count as foreign.
        for former, known in known_journals(environ).items():
            if source_of(known) == writes:
                raise ConfigurationError(
                    f"{writes}: its fleet was {former} and is {settings.name} now. If {former} was renamed, add "
                    f"{former} to spec.previousNames of the Fleet document; if {settings.name} is a new fleet, name a "
                    "new journal with --journal"
                )
    return path


def journal_of_folder(folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the journal for a folder. Raises ConfigurationError: several; JournalError: none, or unreadable."""
    from reconciler.journal.journal_rebuild import known_journals, service_journal, source_of

    if service := service_journal(environ):
        return service
    store = _fleet_file_above(folder.absolute())
    if store is not None and (path_of_store := journal_for(store, environ)) is not None:
        return path_of_store
    journals = known_journals(environ)
    if not journals:
        raise JournalError("there is no journal yet; 'reconciler apply' or 'run' makes one for each fleet")
    around = {str(above) for above in (folder.resolve(), *folder.resolve().parents)}
    here = [path for path in journals.values() if source_of(path) in around] if len(journals) > 1 else []
    if len(here) == 1 or len(journals) == 1:
        return (here or list(journals.values()))[0]
    raise ConfigurationError(
        f"there are journals of several fleets: {', '.join(sorted(journals))}; say which is meant: go to the folder of "
        "its store, or name the store with --store, or the journal with --journal"
    )


def _fleet_file_above(folder: Path) -> Fleet | None:
    """Return the fleet of the nearest `fleet.yaml`, up to the repository's root, reading nothing else; else None."""
    for above in (folder, *folder.parents):
        file = above / "fleet.yaml"
        if file.is_file():
            from reconciler.api.fleet import Snapshot, StoreFile
            from reconciler.fleet import parse

            return parse(Snapshot(revision="", files=(StoreFile(path=file.name, blob="", data=file.read_bytes()),)))
        if (above / ".git").exists():
            return None
    return None


def commits_of(store: str, *, beside: Path) -> Commits:
    """The commits of a store. `beside`: the journal; a service keeps its clones there."""
    from reconciler.store.source import Commits

    def clones() -> Iterator[Path]:
        from reconciler.cli.store_reading import cache_folder

        yield beside.parent
        cache = cache_folder()
        if cache is not None:
            yield cache

    return Commits(store, clones)


_PAGE = 10_000
"""So many entries are asked for at once at most; the service gives no more."""


class ServiceAddress(NamedTuple):
    """The address of a service, and its access."""

    url: str
    token_file: Path | None = None
    ca: Path | None = None

    def open(self) -> RemoteService:
        """Return the service, before any request. Raises ConfigurationError: address or a file is unusable."""
        from reconciler.cli.remote import RemoteService
        from reconciler.secret_files import token_in

        file = self.token_file
        token = token_in(file, "--server-token-file") if file is not None else ""
        return RemoteService(self.url, token=token, ca=self.ca)


server_options = grouped(
    "server",
    lambda server, server_token_file, server_ca: (
        ServiceAddress(server, server_token_file, server_ca) if server else None
    ),
    option("--server", default=None, metavar="URL",
                   help="Ask the service that listens there (https://HOST, http://HOST:PORT, unix:PATH) instead of "
                        "reading here."),
    file_option("--server-token-file", help="File with the token of that service."),
    file_option("--server-ca", help="Certificates of the authorities that it may have."),
)  # fmt: skip


def refuse_local(server: ServiceAddress, **values: object) -> None:
    """Raise UsageError for a typed option about local files, which `--server` would ignore."""
    context = click.get_current_context()
    for name, value in values.items():
        source = context.get_parameter_source(name)
        if value and source is click.core.ParameterSource.COMMANDLINE:
            flag = next((each.opts[0] for each in context.command.params if each.name == name), name)
            raise click.UsageError(f"{flag} says what is read here; with --server {server.url} the service reads it")


def served_history(service: RemoteService, question: HistoryQuery) -> tuple[dict[str, Any], int]:
    """Return the document of `history` from a service, and the number to go on after."""
    limit, after = (question.limit, "") if question.after is None else (_PAGE, question.after)
    query = {name: getattr(question, name) for name in ("resource", "namespace", "cluster", "since")}
    document, headers = service.get("history", **query, limit=limit, after=after)
    return document, int(headers.get("fleet-last-event", 0))
