"""A plain directory has no revisions: its Rollouts are refused by name, wherever they would be passed over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.command_line import Ran, run, write_store

ROLLOUT = """\
# Who goes first.
apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata: {name: careful}
spec:
  stages: [{name: all, clusters: {}}]
"""
CODE = "rollout-needs-revisions"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    write_store(folder)
    (folder / "careful.yaml").write_text(ROLLOUT)
    return folder


def asked(command: str, store: Path, *more: str) -> Ran:
    """A command that would ask clusters; none is there."""
    journal = ("--journal", f"{store.parent}/j.db") if command != "validate" else ()
    return run(command, str(store), *journal, *more)


def test_validate_tells_it_as_an_error(store: Path) -> None:
    found = asked("validate", store)
    assert found.code == 1
    assert "careful.yaml:2" in found.out
    assert "Rollout careful: a directory has no revisions" in found.out
    assert CODE in found.out


@pytest.mark.parametrize("args", [("diff",), ("apply", "--yes")])
def test_what_would_pass_over_it_is_refused_before_a_cluster_is_asked(store: Path, args: tuple[str, ...]) -> None:
    command, *more = args
    found = asked(command, store, *more)
    assert found.code == 1
    assert found.err.startswith("error: careful.yaml:2: Rollout careful: a directory has no revisions")
    assert CODE in found.err
    (store / "careful.yaml").unlink()
    assert CODE not in asked(command, store, *more).err


def test_a_work_tree_has_revisions_unless_its_files_are_taken_as_they_lie(store: Path) -> None:
    for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a@b.c commit --quiet -m Begin"):
        subprocess.run(["git", *command.split()], cwd=store, check=True)
    assert CODE not in asked("validate", store).out
    assert CODE not in asked("validate", store, "--rev", "HEAD").out
    assert CODE in asked("validate", store, "--dir").out
    for command in ("diff", "apply"):
        assert CODE not in asked(command, store).err
        assert CODE in asked(command, store, "--dir").err
