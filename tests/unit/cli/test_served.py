"""`--server`: options that say what is read here do not go with it, and its faults are those of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_line import run

NOBODY = "unix:/nonexistent/http.sock"


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--journal", "j.db"), ("status", "store"), ("status", "--store", "store"),
        ("history", "--journal", "j.db"), ("history", "--store", "store"),
        ("explain", "deploy/web", "store"), ("explain", "deploy/web", "--live"),
        ("explain", "deploy/web", "--rev", "main"), ("explain", "deploy/web", "--dir"),
    ],
)  # fmt: skip
def test_what_is_read_here_is_not_named_beside_it(command: tuple[str, ...]) -> None:
    done = run(*command, "--server", NOBODY)
    assert done.code == 2, done.err
    assert "the service reads it" in done.err


@pytest.mark.parametrize("command", [("status",), ("history",), ("history", "-w"), ("explain", "deploy/web")])
def test_a_service_that_is_not_there_is_an_error_of_one_line(command: tuple[str, ...]) -> None:
    done = run(*command, "--server", NOBODY)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: --server {NOBODY}: nobody listens there; see whether the service runs, and with which --listen\n"
    )


def test_it_comes_from_the_environment_as_all_options_do(tmp_path: Path) -> None:
    done = run("status", RECONCILER_SERVER=NOBODY)
    assert NOBODY in done.err
    done = run("status", RECONCILER_SERVER=NOBODY, RECONCILER_JOURNAL=str(tmp_path / "j.db"))
    assert NOBODY in done.err
    empty = tmp_path / "token"
    empty.touch(mode=0o600)
    done = run("status", "--server", NOBODY, "--server-token-file", str(empty))
    assert f"--server-token-file {empty}: it is empty" in done.err
