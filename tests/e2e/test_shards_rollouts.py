"""A change goes in stages over clusters that several processes apply to. Source: ADR 22; ADR 18."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.daemon_process import FLEET, Daemon
from tests.fakes.documents import config_map, policy
from tests.soak.rollouts import CLUSTERS, rollout
from tests.soak.staged_shards import NAME, SHARDS, StagedShards, scene

pytestmark = pytest.mark.timeout(600)
FLEET_DOCUMENT = {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": NAME}}
FIRST = dict.fromkeys(CLUSTERS, "nginx:1")


def test_commits_go_stage_by_stage_over_the_clusters_of_both_shards(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.all_have("nginx:1"), "the first revision everywhere")
        found.until(lambda: found.is_complete(first), "the first revision completed")
        second = found.put("nginx:2")
        found.until(lambda: found.all_have("nginx:2"), "the second revision everywhere")
        found.until(lambda: found.is_complete(second), "the second revision completed")
        assert {name: entry["revision"] for name, entry in found.entries().items()} == dict.fromkeys(CLUSTERS, second)
        assert not found.referee.wrong


def test_what_does_not_become_healthy_in_one_shard_reaches_no_other(tmp_path: Path) -> None:
    with scene(tmp_path, canary_timeout="8s") as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.is_complete(first), "the first revision completed")
        found.put("nginx:broken")
        found.until(lambda: found.images() == {**FIRST, "m1": "nginx:broken"}, "the broken one in the first stage")
        for each in (found.leader, found.a, found.b):
            found.until(partial(_is_paused, found, each), "everybody to know of it")
        assert found.images() == {**FIRST, "m1": "nginx:broken"}
        mended = found.put("nginx:2")
        found.until(lambda: found.is_complete(mended), "what mends it everywhere")
        assert not found.referee.wrong


def test_a_second_leader_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.is_complete(first), "the first revision completed")
        second = found.process("second")
        with second:
            second.start()
            revision = found.put("nginx:2")
            found.until(lambda: found.images()["m1"] == "nginx:2", "the first stage to have it")
            found.leader.kill()
            found.leader = second
            found.until(lambda: found.is_complete(revision), "the next leader to bring it everywhere")
            begun = [name for name, image in found.referee.seen if image == "nginx:2"]
            assert sorted(begun) == sorted(CLUSTERS), "each of them once"
            assert not found.referee.wrong


def test_a_shard_that_dies_holds_up_what_comes_after_it_until_another_process_has_it(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.is_complete(first), "the first revision completed")
        found.b.kill()
        revision = found.put("nginx:2")
        found.until(lambda: found.images()["m3"] == "nginx:2" or _waits_for_b(found), "the second stage to wait for b")
        found.until(lambda: _waits_for_b(found), "the leader to tell that nobody applies there")
        assert {found.images()[name] for name in ("m2", "m4", "m5", "m6")} == {"nginx:1"}
        spare = found.process("spare", "--role", "applier")
        with spare:
            spare.start()
            found.until(lambda: found.is_complete(revision), "the spare one to bring it everywhere")
            assert not found.referee.wrong


def _is_paused(found: StagedShards, process: Daemon) -> bool:
    return bool(found.stages(process)["canary"]["state"] == "paused")


def _waits_for_b(found: StagedShards) -> bool:
    return "nobody applies to shard b" in json.dumps(found.status(found.leader).get("rollouts"))


def test_a_fleet_goes_over_to_shards_and_back_in_the_middle_of_a_rollout(tmp_path: Path) -> None:
    with scene(tmp_path, approval=True) as found:
        found.store.write("fleet.yaml", {**FLEET_DOCUMENT, "spec": {}})
        first = found.put("nginx:1")
        found.leader.start()
        found.until(lambda: found.images()["m1"] == "nginx:1", "the first one in the first stage")
        found.store.write("rollout.yaml", rollout(approval=True, approvals=[{"stage": "canary", "revision": first}]))
        found.store.commit("approve")
        found.until(lambda: found.is_complete(first), "one process to complete the first revision")
        second = found.put("nginx:2")
        found.until(lambda: found.images() == {**FIRST, "m1": "nginx:2"}, "the second one in the first stage")
        found.a.start()
        found.b.start()
        found.shards(SHARDS)
        found.store.commit("shards")
        found.until(
            lambda: all(mark.get("shard") for mark in found.marks().values()), "the shards to have the clusters"
        )
        found.until(
            lambda: found.stages(found.a)["canary"]["state"] == "waits-for-approval", "a to know what is awaited"
        )
        assert found.images() == {**FIRST, "m1": "nginx:2"}, "nothing was lost, and nothing let through"
        given = [{"stage": "canary", "revision": revision} for revision in (first, second)]
        found.store.write("rollout.yaml", rollout(approval=True, approvals=given))
        found.store.commit("approve the second")
        found.until(lambda: found.images()["m2"] == "nginx:2", "it to go on")
        found.store.write("fleet.yaml", {**FLEET_DOCUMENT, "spec": {"ha": {"cluster": "hub", "leaseDuration": "10s"}}})
        found.store.commit("one process")
        found.until(lambda: found.is_complete(second), "one process to complete it")
        assert not found.referee.wrong


def test_a_cluster_changes_hands_while_a_revision_is_on_its_way_there(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.all_have("nginx:1"), "the first revision everywhere")
        revision = found.put("nginx:2")
        found.until(lambda: found.images()["m1"] == "nginx:2", "the first stage to have it")
        found.shards({**SHARDS, "m1": "b", "m2": "a"})
        found.store.commit("other hands")
        found.until(lambda: found.all_have("nginx:2"), "it everywhere")
        found.until(
            lambda: {entry["revision"] for entry in found.entries().values()} == {revision}, "all marks to tell"
        )
        assert found.marks()["m1"]["shard"] == "b" and found.marks()["m2"]["shard"] == "a"
        assert first != revision and not found.referee.wrong


def test_a_rollout_that_is_new_to_shards_takes_what_runs_as_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.store.write("rollout.yaml")
        found.put("nginx:1")
        found.start()
        found.until(lambda: found.all_have("nginx:1"), "it to run without a Rollout")
        found.until(found.in_step, "all shards to be in step")
        found.referee.wrong.clear()  # The first one went everywhere at once.
        found.store.write("rollout.yaml", rollout())
        revision = found.put("nginx:2")
        found.until(lambda: found.is_complete(revision), "the change to go in stages")
        assert not found.referee.wrong, "the Rollout that came with it held it up already"


def test_what_leaves_the_store_stays_until_the_last_stage_is_done(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.store.write("old.yaml", config_map("old", a="1"), policy("old", "ConfigMap", *CLUSTERS))
        first = found.put("nginx:1")
        found.start()
        found.until(lambda: found.is_complete(first), "the first revision completed")
        assert found.where("old") == set(CLUSTERS)
        found.store.write("old.yaml", policy("old", "ConfigMap", *CLUSTERS))
        second = found.put("nginx:2")
        found.until(lambda: found.images()["m1"] == "nginx:2", "the first stage to have it")
        while not found.all_have("nginx:2"):
            assert found.where("old") == set(CLUSTERS)
        found.until(lambda: not found.where("old"), "it to be gone in the end")
        found.until(lambda: found.is_complete(second), "the second revision completed")
