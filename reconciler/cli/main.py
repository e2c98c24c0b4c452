"""The entry point: a group whose commands are imported only when they are called, so that `--help` is quick."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from reconciler import __version__
from reconciler.errors import ReconcilerError

COMMANDS = {
    "init": "Write a new fleet store, or the missing parts of one.",
    "validate": "Check a store without any cluster.",
    "render": "Print the objects of every cluster as the store wants them.",
    "diff": "Show what would change: against the clusters, or between two revisions.",
    "apply": "Make the clusters equal to the store.",
    "run": "Follow the store and keep the clusters equal to it, as a service.",
    "get": "List objects over all clusters.",
    "explain": "Say why a resource lives where it does.",
    "status": "Say how far the clusters are from the store.",
    "clusters": "List the member clusters.",
    "doctor": "Check access to every cluster.",
    "schema": "Print JSON Schemas of the policy kinds for editors.",
    "journal": "Verify, rebuild or export the journal.",
    "observe": "Write down what is known of the clusters.",
}
"""Command to its one-line help. A command `x` is `reconciler.cli.x:command`."""

ALIASES = {"why": "explain"}


class LazyGroup(click.Group):
    """Knows its commands by name and imports one when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"reconciler.cli.{name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _load_config(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from reconciler.cli.config_file import defaults_from

    ctx.default_map = {name: defaults_from(Path(value)) for name in COMMANDS}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="reconciler")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    envvar="RECONCILER_CONFIG",
    callback=_load_config,
    expose_value=False,
    is_eager=True,
    help="YAML file with defaults of options, by their names.",
)
def cli() -> None:
    """Keeps many Kubernetes clusters equal to a fleet store: a directory or Git repository of workloads and policies.

    STORE is a directory, a Git work tree or a bare repository. Every option can also be given as an environment
    variable (RECONCILER_KUBECONFIG) or as a key of the --config file.
    """


def main(argv: list[str] | None = None) -> Any:
    """Run the command line; faults of the world become one line on stderr and exit code 1."""
    try:
        return cli.main(args=argv, prog_name="reconciler", standalone_mode=True)
    except ReconcilerError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away (`| head`); what it wanted it has got.
        sys.stderr.close()
        sys.exit(0)
