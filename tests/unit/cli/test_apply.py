"""`apply` in a Git work tree: the commit at HEAD is applied, and what it lacks is named."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.fakes.store_trees import commit_all
from tests.unit.cli.command_line import APP, Ran, run, write_store


@pytest.fixture
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundFleet]:
    with background_fleet([ClusterSpec(name=name) for name in ("m1", "m2")], tmp_path_factory.mktemp("fleet")) as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    write_store(folder)
    for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a@b.c commit --quiet -m Begin"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return folder


def apply(store: Path, fleet: BackgroundFleet, *args: str) -> Ran:
    kubeconfig = str(fleet.call(lambda box: box.kubeconfig))
    return run("apply", str(store), "--yes", "--journal", f"{store.parent}/j.db", "--kubeconfig", kubeconfig, *args)


def test_files_that_are_not_committed_are_named_whether_or_not_there_is_something_to_do(
    store: Path, fleet: BackgroundFleet
) -> None:
    (store / "app.yaml").write_text(APP.replace("key: value", "key: other"))
    (store / "more.yaml").write_text(APP.replace("app", "more"))
    said = "not committed, so not applied: app.yaml (changed), more.yaml (new); commit them"
    first = apply(store, fleet)
    assert (first.code, said in first.err) == (0, True)
    again = apply(store, fleet)
    assert "no changes" in again.out
    assert said in again.err
    assert said in apply(store, fleet, "-o", "json").err
    assert "not committed" not in apply(store, fleet, "--rev", "HEAD").err, "what is meant was said"
    assert "not committed" not in apply(store, fleet, "--dir").err


def test_many_such_files_are_counted(store: Path, fleet: BackgroundFleet) -> None:
    assert "not committed" not in apply(store, fleet).err
    for number in range(8):
        (store / f"n{number}.yaml").write_text(APP.replace("app", f"n{number}"))
    assert "n4.yaml (new) and 3 more; commit" in apply(store, fleet).err


def test_one_change_is_one_change(store: Path, fleet: BackgroundFleet) -> None:
    apply(store, fleet)
    fleet.call(lambda box: box["m1"].state.store.remove(("", "configmaps"), "demo", "app"))
    assert "1 change made, 0 failed" in apply(store, fleet).err


def test_the_files_of_the_applied_commit_are_no_later_revision(store: Path, fleet: BackgroundFleet) -> None:
    """A suspension that this commit takes out counts until the next one, also for `diff` of its clean files."""
    suspended = APP.replace("spec:\n", "spec:\n  suspension: {dispatching: true}\n")
    for text in (suspended, APP.replace("key: value", "key: other")):
        (store / "app.yaml").write_text(text)
        commit_all(store)
        apply(store, fleet)
    kubeconfig = str(fleet.call(lambda box: box.kubeconfig))
    beside = ("--journal", f"{store.parent}/j.db", "--kubeconfig", kubeconfig)
    committed = run("diff", str(store), "--rev", "HEAD", *beside)
    assert "susp" in committed.out
    assert run("diff", str(store), *beside).out == committed.out
    (store / "more.yaml").write_text(APP.replace("app", "more"))
    assert "susp" not in run("diff", str(store), *beside).out, "with another file it is the next revision"
