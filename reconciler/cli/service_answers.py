"""Answers of a service on another machine: `--server` of the commands that only read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.cli.remote import RemoteService
    from reconciler.report.views.queries import HistoryQuery

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


server_options = options.grouped(
    "server",
    lambda server, server_token_file, server_ca: (
        ServiceAddress(server, server_token_file, server_ca) if server else None
    ),
    options.option("--server", default=None, metavar="URL",
                   help="Ask the service that listens there (https://HOST, http://HOST:PORT, unix:PATH) instead of "
                        "reading here."),
    options.file_option("--server-token-file", help="File with the token of that service."),
    options.file_option("--server-ca", help="Certificates of the authorities that it may have."),
)  # fmt: skip


def refuse_beside(server: ServiceAddress, **values: object) -> None:
    """Raise UsageError for a typed option about local files, which `--server` would ignore."""
    context = click.get_current_context()
    for name, value in values.items():
        source = context.get_parameter_source(name)
        if value and source is click.core.ParameterSource.COMMANDLINE:
            option = next((each.opts[0] for each in context.command.params if each.name == name), name)
            raise click.UsageError(f"{option} says what is read here; with --server {server.url} the service reads it")


def served_history(service: RemoteService, question: HistoryQuery) -> tuple[dict[str, Any], int]:
    """Return the document of `history` from a service, and the number to go on after."""
    limit, after = (question.limit, "") if question.after is None else (_PAGE, question.after)
    query = {name: getattr(question, name) for name in ("resource", "namespace", "cluster", "since")}
    document, headers = service.get("history", **query, limit=limit, after=after)
    return document, int(headers.get("fleet-last-event", 0))
