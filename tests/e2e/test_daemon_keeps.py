"""Refusals and duties of the daemon: bad histories of the store, broken journals, strangers' clusters, fights, rest.

On embedded clusters. Source: design#last-good-revision; design#fleet-name; design#cluster-identity; design#one-writer;
design#promise-5; design#promise-6; design#fights.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy
from tests.real_clusters import wait_until
from tests.soak.crashes import CLUSTERS

FLEET = "keeps"


class Box(NamedTuple):
    """Embedded clusters and a store with one ConfigMap for m1 and m2."""

    folder: Path
    fleet: BackgroundFleet
    store: GitRepository

    def daemon(self, *args: str, store: str = "", journal: str = "state/journal.db") -> Daemon:
        return Daemon(store or self.store.folder, self.fleet.kubeconfig, self.folder / journal, *args)

    def put(self, value: str, *clusters: str, name: str = "app") -> None:
        self.store.write(f"{name}.yaml", config_map(name, value=value))
        self.store.write(f"{name}-policy.yaml", policy(name, "ConfigMap", *(clusters or ("m1", "m2"))))

    def value(self, cluster: str, name: str = "app") -> str | None:
        live: Any = self.fleet.call(lambda box: box[cluster].state.get("ConfigMap", "demo", name))
        return None if live is None else str(live["data"].get("value"))

    @contextmanager
    def running(self) -> Iterator[Daemon]:
        """The service, once everything is as the first commit says."""
        revision = self.store.commit()
        with self.daemon().start() as daemon:
            daemon.rests(revision)
            yield daemon

    def shows(self, value: str | None, cluster: str = "m1", name: str = "app") -> None:
        wait_until(lambda: self.value(cluster, name) == value, f"{name} in {cluster} to be {value}")

    def writes(self) -> int:
        return self.fleet.call(
            lambda box: sum("fleet-reconciler/" in entry.user_agent for name in box.names for entry in box[name].audit)
        )


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], tmp_path) as fleet:
        found = Box(tmp_path, fleet, GitRepository(tmp_path / "store", FLEET, CLUSTERS))
        found.put("1")
        yield found


def test_a_second_daemon_on_the_same_journal_is_refused(box: Box) -> None:
    with box.running() as first:
        with box.daemon().start() as second:
            assert second.wait() == 1
        assert f"process {first.pid}" in first.text(), "who holds it is named"
        assert first.is_running


def test_a_daemon_with_another_journal_refuses_even_where_nothing_is_to_be_written(box: Box) -> None:
    with box.running() as first:
        with Journal.open(first.journal, read_only=True) as journal:
            holder = journal.uuid
        before = box.writes()
        with box.daemon(journal="other/journal.db").start() as second:
            assert second.wait() == 1
            assert f"is held by journal {holder}" in second.text()
            assert "journal rebuild --takeover" in second.text(), "the way out is named"
            with Journal.open(second.journal, read_only=True) as journal:
                assert journal.ledger() == {}
                assert journal.complete_rounds() == 0
        assert box.writes() == before
        assert first.is_running


def test_of_two_daemons_with_copies_of_a_journal_exactly_one_goes_on_writing(box: Box) -> None:
    def writes() -> dict[str, int]:
        """Return how often the test's ConfigMap was written in each cluster, whoever did it."""
        return box.fleet.call(
            lambda found: {
                name: sum((entry.plural, entry.name) == ("configmaps", "app") for entry in found[name].audit)
                for name in ("m1", "m2")
            }
        )

    def one_writes(value: str) -> None:
        before = writes()
        box.put(value)
        box.store.commit()
        for name in ("m1", "m2"):
            box.shows(value, name)
        time.sleep(1)  # Time for the other one to write as well, if it did.
        assert {name: count - before[name] for name, count in writes().items()} == {"m1": 1, "m2": 1}

    with box.running() as first:
        assert first.stop() == 0
        shutil.copytree(box.folder / "state", box.folder / "clone")
        first.start().follows()
        wait_until(lambda: all(first.holds(name, 2) for name in ("m1", "m2")), "the first to hold the fleet")
        with box.daemon(journal="clone/journal.db").start() as clone:
            clone.says("a copy of this journal holds the fleet")
            one_writes("2")
            first.kill()
            first.start().follows()
            wait_until(lambda: all(first.holds(name, 3) for name in ("m1", "m2")), "the first to hold the fleet")
            one_writes("3")
            assert clone.is_running, "it can be asked what is wrong"
            with Journal.open(clone.journal, read_only=True) as journal:
                wait_until(lambda: "fleet-held-elsewhere" in str(journal.state()), "the report to say so")
            clone.kill()
        first.kill()
        shutil.rmtree(box.folder / "clone")
        shutil.copytree(box.folder / "state", box.folder / "clone")
        with box.daemon(journal="clone/journal.db").start() as clone:
            wait_until(lambda: all(clone.holds(name, 4) for name in ("m1", "m2")), "the clone to hold the fleet")
            first.start().says("a copy of this journal holds the fleet")
            one_writes("4")


def test_a_fleet_that_is_only_observed_may_be_held_by_another_journal(box: Box) -> None:
    with box.running():
        box.store.write("fleet.yaml", {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet",
                                       "metadata": {"name": FLEET}, "spec": {"mode": "observe"}})  # fmt: skip
        box.store.commit()
        with box.daemon(journal="other/journal.db").start() as second:
            second.follows()
            with Journal.open(second.journal, read_only=True) as journal:
                wait_until(lambda: journal.state() is not None, "the report of what is observed")
            assert second.is_running


def test_a_cluster_that_was_replaced_is_left_alone(box: Box) -> None:
    with box.running() as daemon:
        daemon.stop()
    box.fleet.call(lambda fleet: fleet.replace("m2"))
    box.put("2")
    box.store.commit()
    with box.daemon().start() as daemon:
        box.shows("2")
        with Journal.open(daemon.journal, read_only=True) as journal:
            wait_until(lambda: "another cluster answers" in str(journal.state()), "the report to say so")
        assert box.value("m2") is None
    written = box.fleet.call(lambda fleet: fleet["m2"].get("Namespace", "", "kube-system"))
    assert written["metadata"]["name"] == "kube-system"
    assert box.fleet.call(lambda fleet: fleet["m2"].state.get("Namespace", "", "demo")) is None


def stopped_journal(box: Box) -> Path:
    with box.running() as daemon:
        assert daemon.stop() == 0
        return daemon.journal


@pytest.mark.parametrize("harm", ["found when it is opened", "found when it is read"])
def test_a_broken_journal_ends_the_start_with_a_way_out(box: Box, harm: str) -> None:
    path = stopped_journal(box)
    if harm == "found when it is opened":
        os.truncate(path, path.stat().st_size // 2)
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE applied SET uid = 'x'")
        connection.close()
    before = box.writes()
    box.store.write("app.yaml")
    box.store.commit()
    with box.daemon().start() as daemon:
        assert daemon.wait() == 1
        assert "journal rebuild" in daemon.text()
        assert "Traceback" not in daemon.text()
    assert box.writes() == before
    assert box.value("m1") == "1"


def test_a_journal_whose_folder_is_removed_under_the_service_ends_it_before_the_next_write(box: Box) -> None:
    """Source: design#intents: what cannot be recorded is not sent."""
    with box.running() as daemon:
        before = box.writes()
        daemon.journal.parent.rename(box.folder / "taken-away")
        box.put("2")
        box.store.commit()
        assert daemon.wait() == 1
        log = box.folder / "taken-away" / daemon.log.name
        assert "the journal was removed or replaced while it was in use" in log.read_text()
        assert box.writes() == before
        assert box.value("m1") == "1"
