"""The troubles of one night on real clusters: wherever a person on call looks, it says what, who, and what to do.

Pages, `status`, metrics, log and webhook are asked after each of them. Source: design#promise-3; design#told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.admission_webhook import AdmissionWebhook, admitting
from tests.e2e.night import ROOT, RULES, TABLE, Night, Receiver
from tests.e2e.scene import CLUSTERS, Scene, running
from tests.fakes.definitions import definition, widget
from tests.fakes.sealed_documents import sealed
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run


@pytest.mark.parametrize("trouble", TABLE)
def test_the_runbook_of_its_alert_has_the_remedy(trouble: str) -> None:
    row = TABLE[trouble]
    if "alert" not in row:
        assert row.get("metrics"), "it is counted at least"
        return
    page, _, anchor = RULES[row["alert"]]["annotations"]["runbook"].partition("#")
    sections = re.split(r"(?m)^#+ ", (ROOT / page).read_text())
    (section,) = (found for found in sections if found.partition("\n")[0].lower().replace(" ", "-") == anchor)
    assert not [word for word in row["runbook"] if word not in section]


@pytest.fixture
def night(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Night]:
    receiver = Receiver()
    try:
        with running(Scene(tmp_path, three_clusters, "--webhook", receiver.url)) as scene:
            yield Night(scene, receiver)
    finally:
        receiver.close()


@pytest.mark.apiserver
def test_wherever_one_looks_the_cause_the_person_and_the_remedy_are_told(night: Night, tmp_path: Path) -> None:
    scene = night.scene
    scene.until("m1", {"synced": 6})
    scene.until("m2", {"synced": 2})
    for trouble in (a_hand_edit, a_fight, a_stuck_rollout, a_quota, an_image, an_eviction_by_the_kubelet,
                    a_foreign_object, a_broken_commit, a_sops_key, a_definition):  # fmt: skip
        night.begins()
        trouble(night)
    with admitting(scene.clusters["m1"], scene.namespace, tmp_path) as webhook:
        for asked in (a_webhook_that_refuses, a_webhook_that_hangs):
            night.begins()
            asked(night, webhook)
    for trouble in (held_deletions, a_suspension, an_eviction, a_cluster_that_is_down):
        night.begins()
        trouble(night)
    a_cluster_leaves_the_store(scene)
    print({name: round(took_s, 1) for name, took_s in night.took_s.items()})


def a_hand_edit(night: Night) -> None:
    """It is undone at once, and who made it is told."""
    night.scene.by_hand("m1", "a", "theirs")
    wait_until(lambda: night.scene.held_by("m1")["a"] == "1", "the heal")
    night.tells("a hand edit")


def a_fight(night: Night) -> None:
    """Somebody undoes what we do, again and again."""
    scene = night.scene
    for number in range(20):
        if "FightDetected" in scene.daemon.text():
            break
        scene.by_hand("m1", "b", f"theirs-{number}")
        wait_until(lambda: scene.held_by("m1")["b"] == "1" or "FightDetected" in scene.daemon.text(), "a heal")
    scene.by_hand("m1", "b", "theirs at last")
    night.tells("a fight")


def a_stuck_rollout(night: Night) -> None:
    """Its pod has no room, and its deadline is over."""
    scene = night.scene
    scene.put_deployment("main:1", name="large", cpu="64")
    night.tells("a stuck rollout", commit=scene.store.commit("Add a large one", author="ann")[:12])


def a_quota(night: Night) -> None:
    """No pod of it can be made in m2."""
    scene = night.scene
    scene.clusters["m2"].apply({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}},
                                "metadata": {"name": "few", "namespace": scene.namespace}})  # fmt: skip
    used = ("quota", "few", "-n", scene.namespace)
    wait_until(lambda: bool(scene.clusters["m2"].get(*used).get("status", {}).get("used")), "the quota")
    scene.put_deployment("main:1", name="many", cluster="m2")
    night.tells("a quota", commit=scene.store.commit("Add many", author="ben")[:12])


def an_image(night: Night) -> None:
    """In sync, and green nowhere."""
    night.scene.put_deployment("no.such/image:1")
    commit = night.scene.store.commit("Take an image that is not there", author="cem")
    night.scene.cannot_pull("no.such/image:1")
    # Whoever commits something else is not behind it.
    night.scene.store.write("values.yaml", {"none": "of it"})
    night.scene.store.commit("Something else", author="zoe")
    night.tells("an image that one cluster cannot pull", commit=commit[:12])


def an_eviction_by_the_kubelet(night: Night) -> None:
    """Its node has run out of memory, and takes no other pod."""
    scene, m1 = night.scene, night.scene.clusters["m1"]
    scene.put_deployment("main:1", name="hungry")
    scene.store.commit("Add hungry", author="ivy")

    def pod() -> str:
        return m1.kubectl("get", "pods", "-n", scene.namespace, "-l", "app=hungry", "-o", "name",
                          "--field-selector", "status.phase=Running").strip()  # fmt: skip

    wait_until(lambda: bool(pod()), "hungry to run", seen=scene.seen)
    night.begins()
    m1.kubectl("cordon", f"node-{scene.fleet}")
    message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi."
    status = {"status": {"phase": "Failed", "reason": "Evicted", "message": message}}
    m1.kubectl("patch", pod(), "-n", scene.namespace, "--subresource=status", "-p", json.dumps(status))
    night.tells("a pod that the kubelet evicts")
    m1.kubectl("uncordon", f"node-{scene.fleet}")


def a_foreign_object(night: Night) -> None:
    """Somebody else made one of that name."""
    scene = night.scene
    scene.clusters["m2"].apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "theirs"},
                                "metadata": {"name": "e", "namespace": scene.namespace}})  # fmt: skip
    scene.put("e", "1", "m2")
    scene.store.commit("Add e")
    night.tells("a foreign object")


def a_broken_commit(night: Night) -> None:
    """A file that cannot be read; what it concerns stays as it is."""
    scene = night.scene
    scene.store.write_text("broken.yaml", "kind: ConfigMap\n  apiVersion: v1\n")
    commit = scene.store.commit("Break a file", author="fay")
    scene.store.write("values.yaml", {"none": "of it either"})
    scene.store.commit("Something else", author="zoe")
    night.tells("a broken commit", commit=commit[:12])
    scene.store.write("broken.yaml")
    scene.store.commit("Fix it")
    scene.daemon.says("StoreMended")


def a_sops_key(night: Night) -> None:
    """The service has no key for what is encrypted."""
    scene, secret = night.scene, sealed(password="x")
    scene.store.write("sealed.yaml", {**secret, "metadata": {"name": "sealed", "namespace": scene.namespace}},
                      scene.policy("sealed", "Secret", "v1", "m1"))  # fmt: skip
    night.tells("a sops key that is missing", commit=scene.store.commit("Add a Secret", author="gus")[:12])


def a_definition(night: Night) -> None:
    """Somebody deletes the definition of a kind that the store has objects of."""
    scene, m1 = night.scene, night.scene.clusters["m1"]
    m1.apply(definition())
    m1.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    body = widget("w", "1")
    body["metadata"]["namespace"] = scene.namespace
    scene.store.write("w.yaml", body, scene.policy("w", "Widget", "example.com/v1", "m1"))
    scene.store.commit("Add w")
    named = ("widgets.example.com", "-n", scene.namespace)
    wait_until(lambda: "/w" in m1.kubectl("get", *named, "-o", "name"), "w in m1", seen=scene.seen)
    night.begins()
    m1.kubectl("delete", "crd", "widgets.example.com")
    night.tells("a definition that is gone")
    scene.store.write("w.yaml")
    scene.store.commit("Take w out")


def a_webhook_that_refuses(night: Night, webhook: AdmissionWebhook) -> None:
    scene = night.scene
    webhook.reviews["ConfigMap"] = lambda body: "no value of that name" if body["data"] == {"value": "2"} else []
    scene.put("a", "2", "m1")
    commit = scene.store.commit("Change a", author="dan")[:12]
    scene.wanted[("m1", "a")] = "1"
    night.tells("a webhook that refuses", commit=commit)
    scene.put("a", "1", *CLUSTERS)
    scene.store.commit("Take it back")
    wait_until(lambda: scene.held_by("m2").get("a") == "1", "a to be back", seen=scene.seen)


def a_webhook_that_hangs(night: Night, webhook: AdmissionWebhook) -> None:
    """It says nothing, and nothing can be written."""
    scene = night.scene
    webhook.reviews["ConfigMap"] = lambda body: None if body["metadata"]["name"] == "d" else []
    scene.put("d", "3", "m1")
    commit = scene.store.commit("Change d", author="eve")[:12]
    scene.wanted[("m1", "d")] = "1"
    night.tells("a webhook that hangs", commit=commit)
    webhook.reviews.clear()
    scene.wanted[("m1", "d")] = "3"
    wait_until(lambda: scene.held_by("m1")["d"] == "3", "d to be written", seen=scene.seen)


def held_deletions(night: Night) -> None:
    """Two at once are one too many."""
    scene = night.scene
    for name in ("c", "d"):
        scene.put(name, "")
    commit = scene.store.commit("Take c and d out", author="hal")[:12]
    scene.until_trouble("m1", "c", state="held", by="guard")
    scene.store.write("values.yaml", {"still": "none of it"})
    scene.store.commit("Something else", author="zoe")
    night.tells("a deletion that is held", commit=commit, digest=str(scene.status()["heldDigest"]))


def a_suspension(night: Night) -> None:
    """Check that pending changes wait for that person."""
    scene = night.scene
    done = run("suspend", "cluster", "m3", "--reason", "disk swap", "--journal", str(scene.journal))
    assert done.code == 0, done.err
    night.tells("a suspension")


def an_eviction(night: Night) -> None:
    """A copy goes, and everybody knows by whom."""
    scene = night.scene
    scene.put("f", "1", "m1", "m2")
    scene.store.commit("Add f")
    wait_until(lambda: "f" in scene.held_by("m1"), "f in m1", seen=scene.seen)
    night.begins()
    order = ("evict", "configmap/f", "-n", scene.namespace, "--cluster", "m1", "--reason", "bad disk")
    # That it is placed is recorded a moment after it is there.
    wait_until(lambda: run(*order, "--journal", str(scene.journal)).code == 0, "the order to be taken")
    scene.wanted.pop(("m1", "f"))
    night.tells("a copy that was evicted")


def a_cluster_that_is_down(night: Night) -> None:
    """Nobody knows anything of it, and everybody says so."""
    cluster = night.scene.clusters["m2"]
    cluster.stop()
    try:
        night.tells("a cluster that is down", "m2")
    finally:
        cluster.start()


def a_cluster_leaves_the_store(scene: Scene) -> None:
    """Check that its objects stay, and are not forgotten."""
    scene.store.write("clusters/m3.yaml")
    scene.put("a", "2", "m1", "m2")
    scene.store.commit("Take m3 out")
    scene.until("m3", {"left": 2})
    assert scene.held_by("m3") == {"a": "1"}
