"""Clusters and the branch change while a stage waits, on six embedded clusters. Source: ADR 18."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from reconciler.errors import JournalError
from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet
from tests.e2e.test_rollouts_embedded import begun_with_approval, drift, have, images, waits
from tests.fakes.documents import config_map, policy, web
from tests.program import run_text
from tests.soak.rollouts import CLUSTERS, DRIFT, all_have, put, recorded, rollout, scene, until

CLUSTER = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m6"}}


def test_a_cluster_that_is_away_at_its_turn_gets_it_when_it_is_back(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (fleet, store, daemon, referee):
        begun_with_approval(store, daemon, referee)
        revision = put(store, "nginx:2")
        until(daemon, have(referee, images("nginx:2", "nginx:1")), "the second revision in the first stage")
        fleet.call(lambda box: box.servers["m2"].pause())
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": revision}]))
        store.commit("approve")
        until(daemon, lambda: "away" in json.dumps(waits_of(daemon, "m2")), "the turn of the cluster that is away")
        assert {name for name, image in referee.images().items() if image == "nginx:2"} <= {"m1", "m3"}
        fleet.call(lambda box: box.servers["m2"].resume())
        until(daemon, all_have(referee, "nginx:2"), "the second revision everywhere")
        assert not referee.wrong


def waits_of(daemon: Any, cluster: str) -> dict[str, Any]:
    """Return what the journal's picture says of a cluster in the Rollout."""
    with_clusters = json.loads(_state(daemon)).get("rollouts", ())
    return next((each for found in with_clusters for each in found["clusters"] if each["name"] == cluster), {})


def _state(daemon: Any) -> str:
    try:
        with Journal.open(daemon.journal, read_only=True) as journal:
            return json.dumps(journal.state() or {})
    except JournalError:
        return "{}"  # The service has just been started.


def test_a_new_cluster_begins_at_what_is_proven(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (_, store, daemon, referee):
        store.write("clusters/m6.yaml")
        store.write("web-policy.yaml", policy("web", "Deployment"))
        revision = put(store, "nginx:1")
        daemon.start()
        until(daemon, lambda: referee.images()["m1"] == "nginx:1", "the first revision in the first stage")
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": revision}]))
        store.commit("approve")
        until(daemon, lambda: set(recorded(daemon)) == set(CLUSTERS[:5]), "the first revision elsewhere")
        until(daemon, lambda: all(done for _, done in recorded(daemon).values()), "all of them done")
        put(store, "nginx:2")
        until(daemon, lambda: referee.images()["m1"] == "nginx:2", "the second revision in the first stage")
        store.write("clusters/m6.yaml", CLUSTER)
        store.commit("one more")
        until(daemon, lambda: referee.images()["m6"] == "nginx:1", "the proven revision in the new cluster")
        assert referee.images() == images("nginx:2", "nginx:1")


def test_a_force_push_away_from_what_clusters_run(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (fleet, store, daemon, referee):
        begun_with_approval(store, daemon, referee)
        put(store, "nginx:2")
        until(daemon, have(referee, images("nginx:2", "nginx:1")), "the second revision in the first stage")
        store.write("web.yaml", web("nginx:3", 2))
        rewritten = store.commit("another history", parents=[])
        until(daemon, have(referee, images("nginx:3", "nginx:1")), "the rewritten branch in the first stage")
        drift(fleet, "m5", DRIFT)
        until(daemon, have(referee, images("nginx:3", "nginx:1")), "the drift to be put back to a commit of no branch")
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": rewritten}]))
        store.commit("approve")
        until(daemon, all_have(referee, "nginx:3"), "the rewritten branch everywhere")
        assert not referee.wrong


def test_a_gate_asks_for_an_object_that_somebody_makes(tmp_path: Path) -> None:
    smoke = {"type": "Ready", "apiVersion": "v1", "kind": "Pod", "namespace": "demo", "name": "smoke"}
    with scene(tmp_path, conditions=[{"type": "Available"}, smoke]) as (fleet, store, daemon, referee):
        put(store, "nginx:1")
        daemon.start()
        until(daemon, lambda: "Pod demo/smoke is not there" in json.dumps(waits_of(daemon, "m1")), "what it waits for")
        assert {name for name, image in referee.images().items() if image} == {"m1"}
        run_pod(fleet, "m1", "smoke")
        until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")


def run_pod(fleet: BackgroundFleet, cluster: str, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "demo"},
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}  # fmt: skip
    kubectl = ["kubectl", "--kubeconfig", str(fleet.kubeconfig), "--context", cluster, "create", "-f", "-"]
    subprocess.run(kubectl, input=json.dumps(body), text=True, check=True, capture_output=True)


def test_a_pin_holds_a_stage_and_takes_it_back(tmp_path: Path) -> None:
    with scene(tmp_path) as (_, store, daemon, referee):
        first = put(store, "nginx:1")
        daemon.start()
        until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
        store.write("rollout.yaml", rollout(pin={"rest": first}))
        put(store, "nginx:2")
        ahead = {**images("nginx:2", "nginx:1"), "m2": "nginx:2", "m3": "nginx:2"}
        until(daemon, have(referee, ahead), "the second revision in all but the pinned stage")
        until(daemon, lambda: "pinned" in json.dumps(waits(daemon, "rest")), "the pin to be told")
        store.write("rollout.yaml", rollout(pin={"canary": first, "rest": first}))
        store.commit("take the first stage back")
        until(daemon, lambda: referee.images()["m1"] == "nginx:1", "the first stage to be taken back")


def test_what_goes_after_the_last_stage_is_blamed_on_the_commit_that_took_it_away(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (_, store, daemon, referee):
        store.write("old.yaml", config_map("old", a="1"))
        store.write("old-policy.yaml", policy("old", "ConfigMap", *CLUSTERS))
        begun_with_approval(store, daemon, referee)
        store.write("old.yaml")
        revision = store.commit("it alone goes, so that nothing is written in any stage")
        until(daemon, lambda: blamed(daemon, "stage") == {revision}, "what waits for the last stage")
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": revision}]))
        store.commit("approve")
        until(daemon, lambda: blamed(daemon, "guard") == {revision}, "the guard to hold the deletions of that commit")
        events = run_text("history", "--journal", daemon.journal).stdout.splitlines()
        held = [line for line in events if " held " in line and "guard:" in line]
        assert held and all(revision[:12] in line for line in held)
        assert not [line for line in events if "what the clusters have room for" in line]


def blamed(daemon: Any, by: str) -> set[str]:
    """Return the revisions behind what is held."""
    return {each["revision"] for each in json.loads(_state(daemon)).get("troubles", ()) if each.get("by") == by}
