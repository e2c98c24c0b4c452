"""The journal and the clusters as 0.1.0 left them, under this version; and this version's journal under an older one.

`tests/cases/upgrade/0.1.0.tar.gz` was made by 0.1.0 over embedded clusters: its journal as SQL, all objects of three
clusters, and its store with two commits. It had applied the second, and cluster idc was suspended.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler.journal import Journal
from reconciler.journal.sqlite_file import migrations
from reconciler.sim import AuditEntry, BackgroundFleet, Backup, ClusterSpec, FleetInABox, background_fleet
from reconciler.sim.state.store import name_of
from tests.e2e.daemon_process import Daemon
from tests.program import Program
from tests.real_clusters import wait_until

LEFT = Path(__file__).parents[1] / "cases/upgrade/0.1.0.tar.gz"
MARK = ("configmaps", "fleet-example")
"""The ConfigMap that names the journal, and the number that each start raises before it may write."""


class Old(NamedTuple):
    """The clusters, the store and the journal as 0.1.0 left them."""

    folder: Path
    fleet: BackgroundFleet

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.db"

    def daemon(self) -> Daemon:
        return Daemon(self.store, self.fleet.kubeconfig, self.journal, "--poll", "0.2")

    def run(self, *words: str, code: int = 0) -> str:
        """Return both outputs of a command."""
        said = self.folder / "said"
        said.unlink(missing_ok=True)
        environment = {**os.environ, "HOME": str(self.folder), "USER": "wu"}
        assert Program([*words, "--journal", self.journal], environment, out=said, err=said).wait() == code, said
        return said.read_text()

    def written(self) -> list[AuditEntry]:
        """The writes of this version, but for the mark of who holds the fleet."""
        return self.fleet.call(
            lambda box: [
                entry
                for name in box.names
                for entry in box[name].audit
                if "fleet-reconciler/" in entry.user_agent and (entry.plural, entry.name) != MARK
            ]
        )

    def rounds(self) -> int:
        with Journal.open(self.journal, read_only=True) as journal:
            return journal.complete_rounds()

    def commit(self, old: str, new: str) -> None:
        """Replace a text in all files of the store."""
        for path in self.store.rglob("*.yaml"):
            path.write_text(path.read_text().replace(old, new))
        author = ("-c", "user.name=Wu", "-c", "user.email=wu@example.com")
        subprocess.run(["git", *author, "commit", "--quiet", "--all", "-m", "next"], cwd=self.store, check=True)


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    subprocess.run(["tar", "-xf", LEFT, "-C", tmp_path], check=True)
    bundle = tmp_path / "store.bundle"
    subprocess.run(["git", "clone", "--quiet", "-b", "main", str(bundle), str(tmp_path / "store")], check=True)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.executescript((tmp_path / "journal.sql").read_text())
    clusters = json.loads((tmp_path / "clusters.json").read_text())

    def put_back(box: FleetInABox) -> None:
        for name, found in clusters.items():
            objects = {tuple(of): {name_of(body): body for body in bodies} for of, bodies in found["objects"]}
            box[name].put_back(Backup(found["version"], objects))

    with background_fleet([ClusterSpec(name=name) for name in clusters], tmp_path) as fleet:
        fleet.call(put_back)
        yield Old(tmp_path, fleet)


def test_the_next_version_takes_over_without_a_write_and_goes_on(old: Old) -> None:
    before = old.rounds()
    with old.daemon().start() as daemon:
        wait_until(lambda: old.rounds() > before, "a round of this version")
        assert "network works" in old.run("status")
        old.run("resume", "cluster", "idc")
        wait_until(lambda: "network works" not in old.run("status"), "the cluster to be resumed")
        old.run("now", "--store", str(old.store))
        wait_until(lambda: old.rounds() > before + 1, "a round over all clusters")
        assert old.written() == []
        old.commit("nginx:1.28", "nginx:1.29")
        wait_until(lambda: len(old.written()) >= 3, "the commit to be applied")
        assert daemon.stop() == 0
    assert {(entry.verb, entry.plural) for entry in old.written()} == {("patch", "deployments")}
    told = old.run("history", "--limit", "1000")
    assert " Li " in told, "history goes on"
    assert " Wu " in told


def test_apply_and_diff_of_the_next_version_find_nothing_to_do(old: Old) -> None:
    live = ("--kubeconfig", str(old.fleet.kubeconfig))
    old.run("diff", str(old.store), "--rev", "HEAD", *live, "--detailed-exitcode")
    old.run("apply", str(old.store), *live, "--yes")
    assert old.written() == []


def test_a_journal_that_is_lost_is_made_of_the_marks_of_the_earlier_version(old: Old) -> None:
    live = ("--kubeconfig", str(old.fleet.kubeconfig))
    old.journal.unlink()
    said = old.run("journal", "rebuild", str(old.store), *live, "--takeover")
    assert "objects of ours" in said
    old.run("apply", str(old.store), *live, "--yes")
    assert old.written() == []


def test_an_older_version_refuses_the_journal_and_leaves_it_as_it_is(old: Old) -> None:
    live = ("--kubeconfig", str(old.fleet.kubeconfig))
    with closing(sqlite3.connect(old.journal)) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    before = old.journal.read_bytes()
    for words in (("apply", str(old.store), *live, "--yes"), ("run", str(old.store), *live)):
        said = old.run(*words, code=1)
        assert f"has schema {len(migrations()) + 1} and this version knows {len(migrations())}" in said
    assert "idc" in old.run("status"), "what only reads works"
    assert old.journal.read_bytes() == before
    assert old.written() == []
