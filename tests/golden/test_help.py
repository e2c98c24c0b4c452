"""The output of `--help` of every command, word for word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner

from reconciler.cli.main import COMMANDS, cli

Golden = Callable[[str, str], None]
GROUPS = {"inventory": ("sync",), "journal": ("verify", "rebuild", "export")}
PATHS = [(), *((name,) for name in COMMANDS), *((name, inner) for name, found in GROUPS.items() for inner in found)]


def help_of(path: tuple[str, ...]) -> str:
    """The help text at eighty columns."""
    done = CliRunner().invoke(cli, [*path, "--help"], prog_name="reconciler", terminal_width=80)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", PATHS, ids=lambda path: "-".join(path) or "reconciler")
def test_help(golden: Golden, path: tuple[str, ...]) -> None:
    golden(f"cli/{'-'.join(path) or 'reconciler'}.txt", help_of(path))
