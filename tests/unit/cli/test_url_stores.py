"""Commands that read a store once take a Git URL, too."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pygit2
import pytest

from reconciler.cli import printing
from tests.fakes.store_trees import commit_all, write_files
from tests.unit.cli.command_line import APP, run, write_store


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fleet-reconciler"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Two commits of a store in the folder `fleet` of a repository; the branch `wide` has the second."""
    root = tmp_path / "work"
    (root / "fleet").mkdir(parents=True)
    write_store(root / "fleet")
    first = commit_all(root, new=True)
    write_files(root, {"fleet/app.yaml": APP.replace("clusterNames: [m1]", "clusterNames: [m1, m2]")})
    second = commit_all(root)
    repository = pygit2.Repository(str(root))
    repository.branches.local.create("wide", repository[second].peel(pygit2.Commit))
    repository.references["refs/heads/main"].set_target(first)
    return root


def test_a_store_behind_a_url_is_read_at_its_default_branch_and_at_a_revision(work: Path) -> None:
    url = f"file://{work}//fleet"
    done = run("validate", url)
    assert (done.code, "error" in done.out) == (0, False), done
    placed = [
        sorted({found["cluster"] for found in json.loads(run("render", url, *rev, "-o", "json").out)["objects"]})
        for rev in ((), ("--rev", "wide"))
    ]
    assert placed == [["m1"], ["m1", "m2"]]


def test_two_revisions_of_a_url_are_compared(work: Path) -> None:
    done = run("diff", f"file://{work}//fleet", "--base", "main", "--head", "wide", "--detailed-exitcode")
    assert done.code == 2, done
    assert "m2" in done.out


def test_the_clone_is_kept_and_what_is_new_is_fetched_into_it(work: Path, cache: Path) -> None:
    url = f"file://{work}//fleet"
    assert run("validate", url).code == 0
    (clone,) = (found for found in (cache / "git").iterdir() if found.is_dir())
    assert (clone.stat().st_mode & 0o077, (cache / "git").stat().st_mode & 0o077) == (0, 0)
    write_files(work, {"fleet/broken.yaml": "a: ["})
    commit_all(work)
    done = run("validate", url)
    assert done.code == 1
    assert "broken.yaml:2" in done.out


def test_who_waits_for_a_clone_that_another_process_has_is_told(
    work: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{work}//fleet"
    assert run("validate", url).err.count("waiting") == 0
    (lock,) = (cache / "git").glob("*.lock")
    remark = printing.remark
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("4711")
        held.truncate()

        def let_go(text: str) -> None:
            remark(text)
            fcntl.flock(held, fcntl.LOCK_UN)

        held.flush()
        monkeypatch.setattr("reconciler.cli.store_reading.remark", let_go)
        done = run("validate", url)
    assert done.code == 0
    assert f"{url}: waiting for process 4711, which fetches into the same clone" in done.err


def test_without_a_cache_folder_nothing_is_kept(work: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert run("validate", f"file://{work}//fleet").code == 0
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rev", "absent"), "absent"),
        (("--dir",), "STORE is a URL"),
        (("--rev", "main~1"), "no branch, tag or full commit id"),
    ],
)
def test_what_a_url_does_not_have_is_said(work: Path, arguments: tuple[str, ...], says: str) -> None:
    done = run("validate", f"file://{work}//fleet", *arguments)
    assert done.code != 0
    assert says in done.err


@pytest.mark.parametrize("url", ["https://ann:s3cret@127.0.0.1:1/x.git", "ftp://ann:s3cret@example.com/x.git"])
def test_a_server_that_cannot_be_used_is_told_without_the_password(url: str) -> None:
    done = run("validate", url)
    assert done.code != 0
    assert done.err
    assert "s3cret" not in done.out + done.err
