"""What `--help` of every command says, word for word."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from reconciler.cli.main import COMMANDS, cli

Golden = Callable[[str, str], None]
GROUPS = {"journal": ("verify", "rebuild", "export")}
PATHS = [(), *((name,) for name in COMMANDS), *((name, inner) for name, found in GROUPS.items() for inner in found)]


def help_of(path: tuple[str, ...]) -> str:
    """The help text at eighty columns."""
    context = click.Context(cli, info_name="reconciler", terminal_width=80)
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command = found
        context = click.Context(command, parent=context, info_name=name, terminal_width=80)
    return command.get_help(context) + "\n"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "-".join(path) or "reconciler")
def test_help(golden: Golden, path: tuple[str, ...]) -> None:
    golden(f"cli/{'-'.join(path) or 'reconciler'}.txt", help_of(path))
