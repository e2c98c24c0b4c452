"""Commits go over six embedded clusters in three stages, whatever happens to the service and to the clusters."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.api.ledger import EventKind
from reconciler.journal import EventFilter, Journal
from reconciler.sim import BackgroundFleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, divided, policy, web
from tests.fakes.prometheus import FakePrometheus, matrix
from tests.fakes.registry import Registry, packed
from tests.program import run_text
from tests.soak.rollouts import (
    CLUSTERS,
    STAGES,
    Referee,
    all_have,
    confirm,
    put,
    recorded,
    rollout,
    scene,
    until,
)

BEHIND = ("m2", "m3", "m4", "m5", "m6")


def images(first: str, rest: str) -> dict[str, str]:
    """Return what the clusters have when the first stage is ahead."""
    return {"m1": first, **dict.fromkeys(BEHIND, rest)}


def have(referee: Referee, wanted: dict[str, str]) -> Callable[[], bool]:
    return lambda: referee.images() == wanted


def waits(daemon: Daemon, stage: str) -> dict[str, Any]:
    """Return what the journal's picture says of a stage."""
    with Journal.open(daemon.journal, read_only=True) as journal:
        document = journal.state() or {}
    stages = [each for found in document.get("rollouts", ()) for each in found["stages"]]
    return next((each for each in stages if each["name"] == stage), {})


def begun(store: GitRepository, daemon: Daemon, referee: Referee) -> str:
    """The first revision, completed everywhere."""
    revision = put(store, "nginx:1")
    daemon.start()
    until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
    until(daemon, lambda: recorded(daemon) == dict.fromkeys(CLUSTERS, (revision, True)), "completed everywhere")
    return revision


def drift(fleet: BackgroundFleet, cluster: str, image: str) -> None:
    operation = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]
    kubectl = ["kubectl", "--kubeconfig", str(fleet.kubeconfig), "--context", cluster, "-n", "demo"]
    subprocess.run(
        [*kubectl, "patch", "deployment", "web", "--type=json", "-p", json.dumps(operation)],
        check=True, capture_output=True,
    )  # fmt: skip


def test_an_approval_is_a_commit(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (_, store, daemon, referee):
        begun_with_approval(store, daemon, referee)
        revision = put(store, "nginx:2")
        until(daemon, have(referee, images("nginx:2", "nginx:1")), "the second revision in the first stage")
        until(daemon, lambda: revision[:12] in json.dumps(waits(daemon, "canary")), "what waits for an approval")
        other = rollout(approval=True, approvals=[{"stage": "canary", "revision": "0123456789ab"}])
        store.write("rollout.yaml", other)
        store.commit("another revision")
        store.write("notes.yaml", config_map("unclaimed", a="1"))
        last = store.commit("something else")
        until(daemon, lambda: followed(daemon) == last, "the commits to be followed")
        assert referee.images() == images("nginx:2", "nginx:1"), "an approval of another revision is none"
        assert not {revision, last} & in_step(daemon), "five clusters are behind"
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": revision}]))
        head = store.commit("approve")
        until(daemon, all_have(referee, "nginx:2"), "the approved revision everywhere")
        until(daemon, lambda: head in in_step(daemon), "all to be in step")
        assert not referee.wrong


def problems_of(daemon: Daemon) -> str:
    with Journal.open(daemon.journal, read_only=True) as journal:
        return json.dumps((journal.state() or {}).get("problems", ()))


def at_once_for_web() -> dict[str, Any]:
    """A Rollout that is more specific than the one of the scene, and stages nothing."""
    whole = {"name": "all", "clusters": {}, "maxConcurrency": "100%"}
    body = rollout(stages=[whole], templates={"namespaces": ["demo"]})
    return {**body, "metadata": {"name": "over"}}


TRICKS = [
    "loosened",
    "removed with the image",
    "removed, and back unread",
    "another",
    "another with the image",
    "renamed",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_rollout_that_a_commit_takes_away_holds_its_release(trick: str, tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (fleet, store, daemon, referee):
        begun_with_approval(store, daemon, referee)
        if trick == "removed with the image":
            (store.folder / "rollout.yaml").unlink()
        elif trick == "another with the image":
            store.write("over.yaml", at_once_for_web())
        revision = put(store, "nginx:2")
        until(daemon, have(referee, images("nginx:2", "nginx:1")), "the second revision in the first stage")
        if trick in ("removed, and back unread", "renamed"):
            (store.folder / "rollout.yaml").unlink()
        if trick in ("another", "renamed"):
            store.write("over.yaml", at_once_for_web())
        elif trick == "loosened":
            store.write("rollout.yaml", rollout(approval=False))
        head = store.commit("past the gate") if "with the image" not in trick else revision
        until(daemon, lambda: followed(daemon) == head, "the commit to be followed")
        until(daemon, lambda: "rollout-kept-in-force" in problems_of(daemon), "what is said of it")
        if trick in ("another", "renamed"):
            said = run_text("status", "--journal", daemon.journal).stdout
            assert re.search(r" all +m1, .* 0 of 6 +waits for the stage default/canary\n", said), said
        is_gone = "is approved only once its document is back" in problems_of(daemon)
        assert is_gone == trick.startswith(("removed", "renamed")), "nobody can write an approval into it"
        for journal in (daemon.journal, tmp_path / "none.db"):
            options = ("--kubeconfig", fleet.kubeconfig, "--journal", journal, "-o", "json")
            planned = json.loads(run_text("diff", store.folder, *options).stdout)
            assert planned["changes"] == [], "a command plans what the service does, also without its journal"
            assert "rollout-kept-in-force" in {problem["code"] for problem in planned["problems"]}
        daemon.stop()
        daemon.start().follows()
        until(daemon, lambda: "rollout-kept-in-force" in problems_of(daemon), "the same after a restart")
        assert referee.images() == images("nginx:2", "nginx:1"), "no other stage has it"
        if trick == "loosened" or trick.startswith("another"):
            approvals = [{"stage": "canary", "revision": revision}]
            store.write("rollout.yaml", rollout(approval=trick != "loosened", approvals=approvals))
        else:
            store.write("rollout.yaml", rollout(approval=True))
            if trick == "removed, and back unread":
                daemon.stop()
            head = store.commit("as it was")
            if daemon.is_running:
                until(daemon, lambda: followed(daemon) == head, "what was taken away to be back")
            (store.folder / "rollout.yaml").unlink()
            confirm(store)
        store.commit("a person lets it pass")
        if not daemon.is_running:
            daemon.start()
        until(daemon, all_have(referee, "nginx:2"), "the second revision everywhere")
        until(daemon, lambda: "rollout-kept-in-force" not in problems_of(daemon), "its end")


def in_step(daemon: Daemon) -> set[str]:
    with Journal.open(daemon.journal, read_only=True) as journal:
        found = journal.newest_events(EventFilter(kinds=(str(EventKind.IN_STEP),)), 100)
    return {str(each.event.data["revision"]) for each in found}


def followed(daemon: Daemon) -> str:
    with Journal.open(daemon.journal, read_only=True) as journal:
        return str((journal.state() or {}).get("revision", ""))


def begun_with_approval(store: GitRepository, daemon: Daemon, referee: Referee, **spec: Any) -> str:
    """The first revision, which a person lets leave the first stage as well."""
    revision = put(store, "nginx:1")
    daemon.start()
    until(daemon, have(referee, images("nginx:1", "")), "the first revision in the first stage")
    approvals = [{"stage": "canary", "revision": revision}]
    store.write("rollout.yaml", rollout(approval=True, approvals=approvals, **spec))
    store.commit("approve")
    until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
    return revision


@pytest.mark.parametrize("kind", ["restart", "queue"])
def test_a_second_commit(tmp_path: Path, kind: str) -> None:
    with scene(tmp_path, onNewCommit=kind) as (_, store, daemon, referee):
        begun(store, daemon, referee)
        put(store, "nginx:2")
        until(daemon, lambda: referee.images()["m2"] == "nginx:2", "the second revision in the second stage")
        put(store, "nginx:3")
        until(daemon, all_have(referee, "nginx:3"), "the third revision everywhere")
        assert not referee.wrong
        is_complete = {name for name, image in referee.seen if image == "nginx:2"} == set(CLUSTERS)
        assert is_complete == (kind == "queue")


def history(daemon: Daemon) -> str:
    with Journal.open(daemon.journal, read_only=True) as journal:
        found = journal.newest_events(EventFilter(kinds=(str(EventKind.ROLLOUT_BEGUN),)), 100)
    return " ".join(str(each.event.data["why"]) for each in found)


def test_a_metric_of_a_gate_holds_until_prometheus_says_it(tmp_path: Path) -> None:
    """One that is away is never met, and status says so; nothing goes further until it has a good value."""
    metric = {"query": 'errors{cluster="$cluster"}', "threshold": "< 1"}
    with (
        FakePrometheus(lambda params: matrix(params, "0")) as fake,
        scene(tmp_path, canary_gate={"metrics": [metric]}) as (_, store, daemon, referee),
    ):
        fleet = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "staged"},
                 "spec": {"prometheus": "main"}}  # fmt: skip
        store.write("fleet.yaml", fleet)
        put(store, "nginx:1")
        daemon.start(RECONCILER_PROMETHEUS=f"main={fake.url}")
        until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
        assert {params["query"] for _, params, _ in fake.asked} == {'errors{cluster="m1"}'}
        fake.answer = lambda params: None
        put(store, "nginx:2")
        until(daemon, lambda: "Prometheus main cannot be asked" in why(daemon, "m1"), "status to say that it is away")
        fake.answer = lambda params: matrix(params, "NaN")
        until(daemon, lambda: "is nan, not < 1" in why(daemon, "m1"), "status to say that it is no number")
        assert referee.images() == images("nginx:2", "nginx:1")
        fake.answer = lambda params: matrix(params, "0.5")
        until(daemon, all_have(referee, "nginx:2"), "the second revision everywhere")
        assert not referee.wrong
        assert daemon.stop() == 0


@contextmanager
def artifacts(folder: Path, **given: Any) -> Iterator[tuple[Callable[[str], str], GitRepository, Daemon, Referee]]:
    """The same scene with an artifact as the store; the function pushes what lies there, and gives the digest."""
    registry = Registry()
    with scene(folder, **given) as (fleet, store, _, referee):
        fleet.wait(lambda box: registry.__aenter__())

        def push(commit: str) -> str:
            paths = [path for path in store.folder.rglob("*.yaml") if path.is_file()]
            said = {"org.opencontainers.image.revision": f"main@sha1:{commit}"}
            files = {path.relative_to(store.folder).as_posix(): path.read_text() for path in paths}
            return registry.push("prod", packed(files), annotations=said).removeprefix("sha256:")

        journal = folder / "artifact/journal.db"
        with Daemon(f"{registry.store}:prod", fleet.kubeconfig, journal, "--poll", "0.5") as daemon:
            yield push, store, daemon, referee
            assert daemon.stop() == 0
        fleet.wait(lambda box: registry.__aexit__(None, None, None))


def test_artifacts_are_staged_and_named_as_a_store_may_name_them(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"approval": True, "rollbackWindow": "1h"}
    with artifacts(tmp_path, **spec) as (push, store, daemon, referee):
        first = push(put(store, "nginx:1"))
        daemon.start()
        until(daemon, have(referee, images("nginx:1", "")), "the first artifact in the first stage")
        until(daemon, lambda: bool(waits(daemon, "canary").get("approval")), "what waits for an approval")
        (approval,) = yaml.safe_load(waits(daemon, "canary")["approval"])
        assert approval == {"stage": "canary", "revision": f"sha256:{first[:12]}"}
        store.write("rollout.yaml", rollout(**spec, approvals=[approval]))
        push(store.commit("approve"))
        done = dict.fromkeys(CLUSTERS, (first, True))
        until(daemon, lambda: recorded(daemon) == done, "the first artifact everywhere")

        second = push(put(store, "nginx:2"))
        until(daemon, lambda: second[:12] in str(waits(daemon, "canary").get("approval")), "the second one to wait")
        person = {f"GIT_{who}_{part}": "a@b" for who in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
        command = ("approve", "canary", "--store", store.folder, "--journal", daemon.journal)
        said = run_text(*command, environment={**os.environ, **person})
        assert f"approved sha256:{second[:12]} after the stage canary" in said.stdout
        assert "push it ('git push') and the artifact" in said.stderr
        review = run_text("diff", store.folder, "--base", "HEAD~1", "--head", "HEAD", code=None)
        assert "confirmation-fits-nothing" not in review.stdout + review.stderr
        push("approved")
        until(daemon, lambda: recorded(daemon) == dict.fromkeys(CLUSTERS, (second, True)), "the second one everywhere")
        assert not referee.wrong

        # A pin is the digest as history names it.
        told = run_text("history", "--journal", daemon.journal).stdout
        assert f"sha256:{first[:12]}" in told
        pinned = {**rollout(**spec)["spec"], "pin": {"rest": f"sha256:{first[:12]}"}}
        store.write("rollout.yaml", {**rollout(**spec), "spec": pinned})
        push(store.commit("pin"))
        until(daemon, have(referee, {**images("nginx:2", "nginx:2"), **dict.fromkeys(STAGES["rest"], "nginx:1")}), "it")
        told = f"the stage rest is pinned to sha256:{first[:12]}"
        until(daemon, lambda: told in run_text("status", "--journal", daemon.journal).stdout, "status to say so")

        # What was there before, in an artifact of its own, is rolled back to at once, and needs no approval.
        store.write("rollout.yaml", rollout(**spec))
        push(put(store, "nginx:1"))
        until(daemon, all_have(referee, "nginx:1"), "what was rolled back to")
        assert {revision for revision, _ in recorded(daemon).values()} == {first}


def why(daemon: Daemon, cluster: str) -> str:
    with Journal.open(daemon.journal, read_only=True) as journal:
        document = journal.state() or {}
    return next(str(one["why"]) for one in document["rollouts"][0]["clusters"] if one["name"] == cluster)


def test_a_policy_moves_replicas_between_one_that_is_ahead_and_one_that_is_behind(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as (fleet, store, daemon, referee):
        store.write("web-policy.yaml", policy("web", "Deployment", "m1", "m4", placement=divided("m1", "m4")))
        revision = put(store, "nginx:1")
        daemon.start()
        until(daemon, lambda: referee.images()["m1"] == "nginx:1", "the first revision in the first stage")
        store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": revision}]))
        store.commit("approve")
        until(daemon, lambda: referee.images()["m4"] == "nginx:1", "the first revision in the last stage")
        put(store, "nginx:2")
        until(daemon, lambda: referee.images()["m1"] == "nginx:2", "the second revision in the first stage")
        weights = [
            {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in (("m1", 3), ("m4", 1))
        ]
        placement = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                                           "weightPreference": {"staticWeightList": weights}}}  # fmt: skip
        store.write("web.yaml", web("nginx:2", 4))
        store.write("web-policy.yaml", policy("web", "Deployment", "m1", "m4", placement=placement))
        store.commit("move")
        until(daemon, lambda: replicas(fleet) == {"m1": 3, "m4": 1}, "the replicas to be divided again")
        assert referee.images()["m4"] == "nginx:1", "the body is that of its revision"


def replicas(fleet: BackgroundFleet, available: str = "") -> dict[str, int]:
    """Return the replicas that each cluster is to have; `available`: the field of the status to read instead."""
    found = fleet.call(lambda box: {name: box[name].state.get("Deployment", "demo", "web") for name in CLUSTERS})
    have = {name: body for name, body in found.items() if body is not None}
    if available:
        return {name: body.get("status", {}).get(available, 0) for name, body in have.items()}
    return {name: body["spec"]["replicas"] for name, body in have.items()}
