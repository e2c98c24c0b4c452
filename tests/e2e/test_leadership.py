"""Two processes of one fleet, of which one leads: killed, stopped, asked to leave, with a journal each. Source: ADR 20.

The judge sees every write in the moment in which it is made, with the process that made it, by its field in the mark.
"""

from __future__ import annotations

import copy
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import SuspensionRecord
from reconciler.journal import Journal, SharedOrdersTable
from reconciler.lease import Handover, read_handover
from reconciler.sim import BackgroundFleet, ClusterSpec, Event, FleetInABox, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy, web
from tests.fakes.hands import ask
from tests.real_clusters import wait_until

CLUSTERS = ("m1", "m2", "hub")
FLEET = "led"
DURATION_S = 10
"""Longer than a busy machine keeps a process from its turn."""
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "namespace": "demo"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "migrate:1"}]}}},
}  # fmt: skip
pytestmark = pytest.mark.timeout(300)


class Scene:
    """Three clusters, a store, and two processes that know nothing of each other's journals."""

    def __init__(self, folder: Path, fleet: BackgroundFleet, store: GitRepository) -> None:
        self.folder = folder
        self.fleet = fleet
        self.store = store
        self.one = self.process("one")
        self.two = self.process("two")

    def process(self, name: str) -> Daemon:
        return Daemon(self.store.folder, self.fleet.kubeconfig, self.folder / name / "journal.db")

    def put(self, value: str) -> None:
        self.store.write("settings.yaml", config_map("settings", value=value))
        self.store.commit(value)

    def get(self, cluster: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        found = self.fleet.call(lambda box: box[cluster].state.get(kind, namespace, name))
        return dict(found) if found is not None else {}

    def where(self, kind: str, name: str) -> list[str]:
        return [cluster for cluster in CLUSTERS if self.get(cluster, kind, "demo", name)]

    def values(self) -> set[str]:
        found = (self.get(name, "ConfigMap", "demo", "settings") for name in ("m1", "m2"))
        return {each.get("data", {}).get("value", "") for each in found}

    def lease(self) -> dict[str, Any]:
        return dict(self.get("hub", "Lease", "fleet-system", f"fleet-{FLEET}").get("spec", {}))

    def terms(self) -> set[str]:
        """The terms that stand in the marks of the clusters."""
        marks = (self.get(name, "ConfigMap", "fleet-system", f"fleet-{FLEET}") for name in CLUSTERS)
        return {mark.get("data", {}).get("term", "") for mark in marks}

    def is_led_everywhere(self) -> None:
        """Return once the mark of each cluster has the last term."""
        wait_until(lambda: self.terms() == {self.last_term()}, "the last term in every mark", seen=self.said)

    def two_knows_of(self) -> str:
        with Journal.open(self.two.journal, read_only=True) as journal:
            return journal.led_by

    def left(self) -> Handover:
        """Return what stands beside the Lease for the next leader."""
        handover = read_handover(self.get("hub", "ConfigMap", "fleet-system", f"fleet-{FLEET}-handover"))
        assert handover is not None
        return handover

    def last_term(self) -> str:
        return str(self.lease()["leaseTransitions"])

    def has(self, value: str) -> None:
        """Return once both clusters have a value."""
        wait_until(lambda: self.values() == {value}, f"{value} everywhere", seen=self.said)

    def seen_from_now(self) -> list[str]:
        """The values that are written from now on, wherever."""
        seen: list[str] = []

        def note(event: Event) -> None:
            if event.body["kind"] == "ConfigMap" and event.body["metadata"]["name"] == "settings":
                seen.append(event.body["data"]["value"])

        def listen(box: FleetInABox) -> None:
            for name in ("m1", "m2"):
                box[name].state.store.listeners.append(note)

        self.fleet.call(listen)
        return seen

    def said(self) -> str:
        return f"one: {self.one.text()[-1500:]} two: {self.two.text()[-1500:]}"


def for_kind(kind: str, api_version: str, name: str, **spec: Any) -> dict[str, Any]:
    made = policy(name, kind, "m1", "m2", **spec)
    made["spec"]["resourceSelectors"][0]["apiVersion"] = api_version
    return made


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        ha = {"cluster": "hub", "leaseDuration": f"{DURATION_S}s"}
        store = GitRepository(folder / "store", FLEET, CLUSTERS, ha=ha)
        store.write("policy.yaml", policy("settings", "ConfigMap", "m1", "m2"))
        found = Scene(folder, fleet, store)
        found.put("first")
        with found.one, found.two:
            found.one.start()
            found.one.says('"Leads"')
            found.two.start()
            found.two.says(f'"event": "StandsBy", "why": "{found.lease()["holderIdentity"]} leads"')
            found.has("first")
            yield found


def test_a_leader_that_sleeps_past_its_lease_takes_nothing_back_when_it_wakes(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("second")
        time.sleep(0.1)  # The moment is the case: it may be about to write what will be old when it wakes.
        os.kill(found.one.pid, signal.SIGSTOP)
        found.put("third")
        found.has("third")
        seen = found.seen_from_now()
        os.kill(found.one.pid, signal.SIGCONT)
        found.one.says('"LeadLost"')
        found.put("fourth")
        found.has("fourth")
        found.is_led_everywhere()
        assert [value for value in seen if value not in ("third", "fourth")] == []
        found.two.kill()
        found.put("fifth")
        found.has("fifth")


def test_who_is_asked_to_leave_gives_the_lease_back(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        holder = found.lease()["holderIdentity"]
        assert found.one.stop() == 0
        assert found.lease()["holderIdentity"] != holder
        found.put("second")
        found.has("second")


def test_what_was_ordered_and_counted_goes_over_to_the_next_leader(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        with SharedOrdersTable(found.one.journal) as orders:
            orders.suspend(SuspensionRecord(scope="cluster m2", reason="disk swap", who="li", until=""))
        wait_until(lambda: "disk swap" in str(found.left()), "the suspension to stand beside the Lease")
        found.one.kill()
        found.put("second")
        wait_until(lambda: found.values() == {"first", "second"}, "m1 alone changes", seen=found.said)
        with Journal.open(found.two.journal, read_only=True) as journal:
            assert [each.reason for each in journal.suspensions()] == ["disk swap"]


def test_a_lease_that_is_deleted_makes_no_second_leader(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        holder = found.lease()["holderIdentity"]
        wait_until(lambda: found.two_knows_of() == holder, "the standby to have seen who leads")
        path = f"/apis/coordination.k8s.io/v1/namespaces/fleet-system/leases/fleet-{FLEET}"
        found.fleet.call(lambda box: ask(box["hub"], "DELETE", path))
        wait_until(lambda: found.lease().get("holderIdentity") == holder, "made again by who held it")
        found.put("second")
        found.has("second")
        assert "Leads" not in found.two.text()


@pytest.mark.parametrize(
    "point", ["after a write to a member: apply Lease", "before a write to a member: apply ConfigMap"]
)
def test_who_dies_while_it_takes_over_takes_over_later(tmp_path: Path, point: str) -> None:
    """After it wrote the Lease, or before it wrote what is left beside it, the marks, or the first object."""
    with scene(tmp_path) as found:
        found.two.kill()
        found.two.start(RECONCILER_FAIL_POINT=point)
        found.two.says('"StandsBy"')
        found.one.kill()
        found.put("second")
        assert found.two.wait() == -signal.SIGKILL
        found.two.start()
        found.has("second")
        found.is_led_everywhere()


def test_the_standby_runs_no_hook_again_that_was_deleted(tmp_path: Path) -> None:
    """Source: ADR 26."""
    with scene(tmp_path) as found:
        runs = set[str]()

        def note(event: Event) -> None:
            if event.body["kind"] == "Job":
                runs.add(event.body["metadata"]["uid"])

        def listen(box: FleetInABox) -> None:
            for name in ("m1", "m2"):
                box[name].state.store.listeners.append(note)

        found.fleet.call(listen)
        annotations = {"fleet.reconciler/hook": "before", "fleet.reconciler/hook-delete": "succeeded"}
        hook = copy.deepcopy(JOB)
        hook["metadata"]["annotations"] = annotations
        found.store.write("job/job.yaml", hook, for_kind("Job", "batch/v1", "migrate"))
        found.put("second")
        found.has("second")
        wait_until(lambda: len(runs) == 2 and not found.where("Job", "migrate"), "the hooks to leave", seen=found.said)
        found.one.kill()
        for value in ("third", "fourth"):
            found.put(value)
            found.has(value)
        found.is_led_everywhere()
        assert len(runs) == 2


def test_what_is_in_a_cluster_that_is_away_at_the_takeover_is_not_begun_a_second_time(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        only: dict[str, Any] = {
            "placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
        }
        found.store.write("job.yaml", JOB, for_kind("Job", "batch/v1", "migrate", **only))
        found.store.write("web.yaml", web("nginx:1", 1), for_kind("Deployment", "apps/v1", "web", **only))
        found.put("second")
        found.has("second")
        wait_until(
            lambda: found.where("Job", "migrate") == found.where("Deployment", "web") == ["m1"],
            "the Job",
            seen=found.said,
        )
        wait_until(lambda: ("batch", "Job", "demo", "migrate") in found.left().placements, "the placement to be left")
        found.fleet.wait(lambda box: box.servers["m1"].stop())
        found.one.kill()
        found.two.says('"Leads"')
        found.put("third")
        wait_until(lambda: found.values() == {"second", "third"}, "m2 alone changes", seen=found.said)
        assert found.where("Job", "migrate") == found.where("Deployment", "web") == ["m1"]
        found.fleet.wait(lambda box: box.servers["m1"].start())
        found.has("third")
        assert found.where("Job", "migrate") == found.where("Deployment", "web") == ["m1"]
