"""Shards in an unkind world: what hands do to the objects beside the Leases, and processes that come and go just then.

Source: ADR 22. The scene is that of `test_shards`: m1 is of shard a, m2 and m3 of shard b.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import Request
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon
from tests.e2e.test_shards import JOB, LABEL, NAME, Scene, _for_job, order, scene, start
from tests.fakes.documents import config_map, policy, web

pytestmark = pytest.mark.timeout(300)
SYSTEM = "fleet-system"
ACCOUNTS = (f"shard.a.{NAME}-account", f"shard.b.{NAME}-account", f"fleet-{NAME}-account")


def by_hand(found: Scene, method: str, name: str, body: Any = None, *, kind: str = "configmaps") -> int:
    """What a person does to an object beside the Leases; the code of the answer."""
    root = "/api/v1" if kind == "configmaps" else "/apis/coordination.k8s.io/v1"
    request = Request(
        method=method, path=f"{root}/namespaces/{SYSTEM}/{kind}/{name}", query={}, body=body,
        content_type="application/merge-patch+json", accept="application/json", user_agent="kubectl/v1",
    )  # fmt: skip
    return found.fleet.call(lambda box: box["hub"].request(request)).status


def data(found: Scene, name: str) -> dict[str, str]:
    return dict((found.get("hub", "ConfigMap", name, SYSTEM) or {}).get("data", {}))


def begun(found: Scene) -> None:
    found.put("1")
    found.store.commit()
    start(found)
    found.until(lambda: found.everywhere("1"), "all to be there")
    for name in ACCOUNTS:
        found.until(lambda name=name: data(found, name), f"{name} to be told")  # type: ignore[misc]


def test_an_account_that_a_hand_deletes_is_told_again_on_a_quiet_fleet(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        begun(found)
        for name in ACCOUNTS:
            assert by_hand(found, "DELETE", name) == 200
        for name in ACCOUNTS:
            found.until(lambda name=name: data(found, name), f"{name} to be told again")  # type: ignore[misc]


def test_an_account_that_a_hand_spoils_is_told_again_on_a_quiet_fleet(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        begun(found)
        before = {name: data(found, name) for name in ACCOUNTS}
        for name in ACCOUNTS:
            assert by_hand(found, "PATCH", name, {"data": {"account": "nonsense", "shard": "q"}}) == 200
        for name in ACCOUNTS:
            found.until(lambda name=name: data(found, name) == before[name], f"{name}: told again")  # type: ignore[misc]


def test_what_the_next_leader_has_to_know_is_left_again_where_a_hand_deletes_it(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        begun(found)
        assert order(found.leader, "suspend", "cluster", "m3", "--reason", "an audit").returncode == 0
        name = f"fleet-{NAME}-handover"
        found.until(lambda: found.status(found.b).get("suspensions"), "the shard to know of it")
        assert by_hand(found, "DELETE", name) == 200
        found.until(lambda: data(found, name), "it to be left again")


def test_what_the_next_leader_has_to_know_is_left_again_where_a_hand_restores_an_old_one(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        begun(found)
        name = f"shard.b.{NAME}-handover"
        old = data(found, name)
        found.b.kill()
        shutil.rmtree(found.b.journal.parent)
        found.b.start()
        found.until(lambda: data(found, name)["journal"] != old["journal"], "the next to lead")
        assert by_hand(found, "PATCH", name, {"data": old}) == 200
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the commit")
        found.until(lambda: data(found, name)["journal"] != old["journal"], "it to be left again")


def test_a_cluster_changes_hands_though_another_process_has_its_old_shard_by_now(tmp_path: Path) -> None:
    """Whoever takes the Lease of the shard after the commit has never known the cluster, and lets go of nothing."""
    with scene(tmp_path) as found, found.process("spare", "--role", "applier", "--shard", "b") as spare:
        begun(found)
        spare.start()
        spare.says('"StandsBy"')
        os.kill(found.a.pid, signal.SIGSTOP)  # It sees nothing of the time in which nobody has the shard.
        found.b.kill()
        found.shard({"m2": "a"})
        found.put("2")
        found.store.commit()
        spare.says('"Leads"')
        os.kill(found.a.pid, signal.SIGCONT)
        found.until(lambda: found.everywhere("2"), "all to go on")
        assert found.mark("m2")["shard"] == "a"
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")


def test_a_journal_from_a_backup_is_not_believed(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        begun(found)
        assert found.b.stop() == 0
        backup = tmp_path / "backup"
        shutil.copytree(found.b.journal.parent, backup)
        found.b.start()
        found.store.write("later.yaml", config_map("later", value="1"), policy("later", "ConfigMap", "m1", "m3"))
        found.store.write("job.yaml", JOB, _for_job("m3"))
        found.store.commit()
        found.until(lambda: found.where("ConfigMap", "later") == {"m1", "m3"}, "what came later")
        found.until(lambda: found.where("Job", "migrate") == {"m3"}, "the run")
        found.b.kill()
        shutil.rmtree(found.b.journal.parent)
        shutil.copytree(backup, found.b.journal.parent)
        found.store.write("later.yaml")
        found.store.write("job.yaml")
        found.store.commit()
        found.b.start()
        found.until(lambda: not found.where("ConfigMap", "later"), "what left the store to be gone")
        found.until(lambda: not found.where("Job", "migrate"), "the run to be gone")


def test_a_run_is_not_begun_twice_by_processes_that_have_never_seen_the_fleet(tmp_path: Path) -> None:
    """One process without a Lease had it all; then shards are named, and all journals are new."""
    once = {"placement": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}}
    with scene(tmp_path) as found, found.process("first") as first:
        made = policy("migrate", "Job", "m2", "m3")
        made["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
        made["spec"]["placement"] |= once["placement"]
        found.ha()
        found.put("1")
        found.store.write("job.yaml", JOB, made)
        found.store.commit()
        first.start()
        found.until(lambda: found.everywhere("1") and found.where("Job", "migrate"), "the one process to apply")
        assert found.where("Job", "migrate") == {"m2"}
        made["spec"]["placement"]["clusterAffinity"]["clusterNames"] = ["m1", "m2"]
        found.store.write("job.yaml", JOB, made)
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the one process to apply")
        assert found.where("Job", "migrate") == {"m2"}
        first.kill()
        found.ha("a", "b")
        found.put("3")
        found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("3"), "the shards to go on")
        assert found.where("Job", "migrate") == {"m2"}


@pytest.mark.parametrize("is_old_gone", [False, True])
def test_shards_are_renamed_while_things_go_on(tmp_path: Path, is_old_gone: bool) -> None:
    with scene(tmp_path) as found, found.process("c", "--role", "applier", "--shard", "c") as new:
        begun(found)
        everywhere = policy("web", "Deployment", "m1", "m3")
        found.store.write("web.yaml", web("nginx:1", 1), everywhere)
        found.store.commit()
        found.until(lambda: found.replicas() == {"m1": 1, "m3": 1}, "the Deployment")
        if is_old_gone:
            found.b.kill()
        new.start()
        new.says("NoShard")
        found.shard({"m2": "c", "m3": "c"})
        found.ha("a", "c")
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), f"the new shard; {new.text()[-2000:]}")
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")


@pytest.mark.parametrize(
    "spec",
    [
        {"holderIdentity": 7, "leaseTransitions": "x", "leaseDurationSeconds": -5},
        {"leaseTransitions": 2**31 - 1},
        {"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None},
    ],
)
def test_a_lease_that_a_hand_spoils_keeps_nobody_from_going_on(tmp_path: Path, spec: dict[str, Any]) -> None:
    with scene(tmp_path) as found:
        begun(found)
        for name in (f"shard.a.{NAME}", f"fleet-{NAME}"):
            assert by_hand(found, "PATCH", name, {"spec": spec}, kind="leases") == 200
        found.b.kill()
        assert by_hand(found, "PATCH", f"shard.b.{NAME}", {"spec": spec}, kind="leases") == 200
        found.b.start()
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "all to go on")
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")


@pytest.mark.parametrize("is_standby", [True, False])
def test_a_fleet_without_a_lease_gives_way_to_shards_whoever_leads_first(tmp_path: Path, is_standby: bool) -> None:
    """The one that had it stands by, or applies to a shard now; who leads has never seen the fleet."""
    words = () if is_standby else ("--role", "applier", "--shard", "a")
    with scene(tmp_path) as found, found.process("first") as first:
        once = policy("migrate", "Job", "m2", "m3")
        once["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
        once["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
        found.store.write("fleet.yaml", {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": NAME}})
        found.put("1")
        found.store.write("job.yaml", JOB, once)
        found.store.commit()
        first.start()
        found.until(lambda: found.everywhere("1") and found.where("Job", "migrate") == {"m2"}, "the one process")
        # The run stays where it was begun, whatever the policy says by now.
        once["spec"]["placement"]["clusterAffinity"]["clusterNames"] = ["m1", "m2"]
        found.store.write("job.yaml", JOB, once)
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the one process")
        assert first.stop() == 0
        found.ha("a", "b")
        found.put("3")
        found.store.commit()
        found.leader.start()
        found.b.start()
        found.leader.says('"StandsBy"')
        found.until(lambda: found.get("hub", "Lease", f"fleet-{NAME}", SYSTEM), "the new process to hold the Lease")
        second = Daemon(found.store.folder, found.fleet.kubeconfig, first.journal, *words)
        with second, ExitStack() as stack:
            second.start()
            if is_standby:
                stack.enter_context(found.a)
                found.a.start()
            found.until(lambda: found.everywhere("3"), f"the shards to have taken over; {second.text()[-2000:]}")
            found.store.write("settings.yaml")
            found.store.commit()
            found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")
            assert found.where("Job", "migrate") == {"m2"}


def test_a_leader_that_knows_nothing_and_is_left_nothing_begins_no_run_twice(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        once = policy("migrate", "Job", "m2", "m3")
        once["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
        once["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
        found.store.write("job.yaml", JOB, once)
        begun(found)
        found.until(lambda: found.where("Job", "migrate") == {"m2"}, "the run to begin")
        found.leader.kill()
        shutil.rmtree(found.leader.journal.parent)
        assert by_hand(found, "DELETE", f"fleet-{NAME}-handover") == 200
        once["spec"]["placement"]["clusterAffinity"]["clusterNames"] = ["m1", "m2"]
        found.store.write("job.yaml", JOB, once)
        found.put("2")
        revision = found.store.commit()
        found.leader.start()
        found.until(lambda: data(found, ACCOUNTS[2])["revision"] == revision, "the leader to decide")
        found.until(lambda: found.everywhere("2"), "the commit to be everywhere")
        found.put("3")
        revision = found.store.commit()
        found.until(lambda: data(found, ACCOUNTS[2])["revision"] == revision, "the leader to decide")
        found.until(lambda: found.everywhere("3"), "the commit to be everywhere")
        assert found.where("Job", "migrate") == {"m2"}


def test_a_far_cluster_comes_back_to_a_shard(tmp_path: Path) -> None:
    with scene(tmp_path) as found, found.process("far", "--cluster", "m3") as far:
        begun(found)
        metadata = {"name": "m3", "labels": {LABEL: "b"}}
        document = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata}
        found.store.write("clusters/m3.yaml", {**document, "spec": {"syncMode": "Pull"}})
        found.put("2")
        revision = found.store.commit()
        found.until(lambda: found.status(found.b)["revision"] == revision, "the shard to leave it")
        assert take_over(found, far, "m3").returncode == 0
        far.start()
        found.until(lambda: found.everywhere("2"), f"the far process to have it; {far.text()[-2000:]}")
        far.kill()
        found.store.write("clusters/m3.yaml", document)
        found.put("3")
        found.store.commit()
        assert found.b.stop() == 0
        assert take_over(found, found.b, "m3").returncode == 0
        found.b.start()
        found.until(lambda: found.everywhere("3"), "the shard to have it back")
        assert found.mark("m3")["shard"] == "b"


@pytest.mark.parametrize("scope", [("cluster", "m3"), ("Deployment/web", "-n", "demo")])
def test_a_person_suspends_a_part_of_the_fleet_where_the_leader_runs(tmp_path: Path, scope: tuple[str, ...]) -> None:
    with scene(tmp_path) as found:
        found.store.write("web.yaml", web("nginx:1", 1), policy("web", "Deployment", "m3"))
        begun(found)
        found.until(lambda: found.replicas() == {"m3": 1}, "the Deployment")
        found.until(lambda: found.status(found.leader).get("clusters"), "the leader to know of the clusters")
        answer = order(found.leader, "suspend", *scope, "--reason", "an audit")
        assert answer.returncode == 0, answer.stderr
        found.until(lambda: found.status(found.b).get("suspensions"), "the shard to know of it")
        found.store.write("web.yaml", web("nginx:1", 2), policy("web", "Deployment", "m3"))
        found.put("2")
        found.store.commit()
        found.until(lambda: found.values()["m1"] == "2", "the others to go on")
        found.until(lambda: found.status(found.b)["held"], "it to be held")
        assert found.replicas() == {"m3": 1}
        assert order(found.leader, "resume", "--all").returncode == 0
        found.until(lambda: found.replicas() == {"m3": 2} and found.everywhere("2"), "writing to go on")


def test_a_person_evicts_where_the_leader_runs(tmp_path: Path) -> None:
    once = policy("web", "Deployment", "m1", "m3")
    once["spec"]["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    with scene(tmp_path) as found:
        found.store.write("web.yaml", web("nginx:1", 1), once)
        begun(found)
        found.until(lambda: len(found.replicas()) == 1, "the Deployment")
        (where,) = found.replicas()
        answer = order(
            found.leader, "evict", "Deployment/web", "-n", "demo", "--cluster", where, "--reason", "x", "--for", "1h"
        )
        assert answer.returncode == 0, answer.stderr
        found.until(lambda: found.replicas().keys() == {"m1", "m3"} - {where}, "it to have moved")


def take_over(found: Scene, process: Daemon, cluster: str) -> subprocess.CompletedProcess[str]:
    """A person takes a cluster over for the journal of a process that does not run."""
    process.journal.parent.mkdir(parents=True, exist_ok=True)
    words = ["journal", "rebuild", str(found.store.folder), "--cluster", cluster, "--takeover"]
    command = [sys.executable, "-m", "reconciler", *words, "--journal", str(process.journal)]
    command += ["--kubeconfig", str(found.fleet.kubeconfig)]
    return subprocess.run(command, check=False, capture_output=True, text=True)
