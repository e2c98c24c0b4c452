"""Acting on a plan: journaled first, cluster by cluster, one fault alone.

Source: design#promise-4; design#promise-7.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.controller.round.apply_plan import WriteContext, act
from reconciler.errors import HeldByCopy, JournalError, MemberClusterError
from reconciler.kube import MemberCluster
from reconciler.sim import Fault, FaultKind, is_write
from tests.fakes.hands import ask
from tests.fakes.members import FLEET, Open, comparer_of, opened
from tests.fakes.worlds import config_map, deployment, fleet_of, policy

APP = Identity("", "ConfigMap", "demo", "app")


def store(*clusters: str, keep: bool = False, value: str = "1") -> Fleet:
    chosen = policy("ConfigMap", *clusters, preserveResourcesOnDeletion=keep)
    return fleet_of(config_map(value=value), chosen, clusters=("m1", "m2"))


async def test_what_was_acknowledged_is_recorded_and_no_intent_stays_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        results = await scene.apply(store("m1", "m2"))
        assert [result.error for result in results] == [""] * 4
        assert scene.journal.open_intents() == {}
        for cluster in ("m1", "m2"):
            live = scene.live(cluster)
            assert live is not None
            assert scene.journal.applied(cluster)[APP].uid == live["metadata"]["uid"]


async def test_a_cluster_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        _, planned = await scene.plan(store("m1", "m2"))
        scene.box.servers["m2"].faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_write, times=50)
        results = await scene.act(planned)
        failed = {result.change.cluster for result in results if result.error}
        assert failed == {"m2"}
        assert scene.live("m1") is not None
        assert scene.journal.open_intents() == {}
        assert scene.journal.applied("m2") == {}


async def test_what_was_removed_is_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store("m1", "m2"))
        gone = fleet_of(policy("ConfigMap", "m1", "m2", preserveResourcesOnDeletion=False), clusters=("m1", "m2"))
        await scene.apply(gone)
        assert scene.live("m1") is None
        assert APP not in scene.journal.applied("m1")


@pytest.mark.parametrize("keep", [False, True])
async def test_what_has_left_the_store_is_nothing_to_correct_there(tmp_path: Path, keep: bool) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store("m1", keep=keep))
        _, planned = await scene.plan(fleet_of(policy("ConfigMap", "m1"), clusters=("m1", "m2")))
        scene.box.servers["m1"].faults.order(Fault(kind=FaultKind.EXPIRED), when=is_write, times=50)
        (failed,) = (result for result in await scene.act(planned) if result.change.identity == APP)
        assert failed.error
        assert failed.todo.startswith("fix in {cluster} what refuses to let it go, or `git revert")


async def test_nothing_is_sent_that_could_not_be_journaled(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        _, planned = await scene.plan(store("m1"))
        scene.journal.close()
        acting = WriteContext(
            members=scene.members,
            journal=scene.journal,
            comparer=comparer_of(FLEET),
        )
        with pytest.raises(JournalError):
            await act(planned.plan, acting)
        assert scene.verbs("m1") == []


async def test_each_result_is_told_as_it_comes(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        _, planned = await scene.plan(store("m1"))
        told: list[str] = []
        acting = WriteContext(members=scene.members, journal=scene.journal, comparer=comparer_of(FLEET),
                        tell=lambda result: told.append(result.change.identity.kind))  # fmt: skip
        await act(planned.plan, acting)
        assert told == ["Namespace", "ConfigMap"]


async def test_a_later_wave_that_deletes_asks_whether_the_fleet_is_still_held(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    own = [policy("ConfigMap", "m1", name=name, preserveResourcesOnDeletion=False) for name in names]
    for found, name in zip(own, names, strict=True):
        found["spec"]["resourceSelectors"][0]["name"] = name

    async def lost(member: MemberCluster) -> MemberClusterError:
        return HeldByCopy(member.name, "somebody else holds the fleet")

    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(*(config_map(name) for name in names), *own, clusters=("m1", "m2")))
        _, planned = await scene.plan(fleet_of(*own, clusters=("m1", "m2")))
        deletes = [number for number, change in enumerate(planned.plan.changes) if change.identity.kind == "ConfigMap"]
        plan = replace(planned.plan, waves=tuple((number,) for number in deletes))
        acting = WriteContext(
            members=scene.members,
            journal=scene.journal,
            comparer=comparer_of(FLEET),
            lost=lost,
        )
        results = await act(plan, acting)
        assert [bool(result.error) for result in results] == [False, True, True]
        assert "somebody else holds the fleet" in results[-1].error
        assert [scene.live("m1", name) is None for name in names] == [True, False, False]
        assert not scene.journal.open_intents()


async def test_what_follows_an_owner_that_could_not_be_deleted_stays(tmp_path: Path) -> None:
    owner = deployment("web", 1)
    owner["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "app"}}]
    rule = policy("Deployment", "m1", propagateDeps=True, preserveResourcesOnDeletion=False)

    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(owner, config_map(), rule, clusters=("m1", "m2")))
        assert scene.live("m1") is not None
        _, planned = await scene.plan(fleet_of(rule, clusters=("m1", "m2")))
        scene.box.servers["m1"].faults.order(
            Fault(kind=FaultKind.FORBIDDEN), when=lambda request: request.method == "DELETE", times=1
        )
        failed = {result.change.identity.name: result.error for result in await scene.act(planned) if result.error}
        assert set(failed) == {"web", "app"}
        assert failed["app"] == "it stays, since Deployment demo/web could not be deleted"
        assert scene.live("m1") is not None
        assert not scene.journal.open_intents()
        await scene.apply(fleet_of(rule, clusters=("m1", "m2")))
        assert scene.live("m1") is None


async def test_what_finalizers_keep_is_remembered_until_it_is_gone(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store("m1"))
        keep(scene, "example.com/cleanup")
        gone = fleet_of(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False), clusters=("m1", "m2"))
        results = await scene.apply(gone)
        assert [(result.error, result.is_terminating) for result in results if result.change.identity == APP] == [
            ("", True)
        ]
        assert APP in scene.journal.applied("m1")


async def test_what_needs_another_object_to_leave_waits_for_its_finalizers(tmp_path: Path) -> None:
    secret = {**config_map("follower"), "kind": "Secret", "data": {}}
    rules = [
        policy(kind, "m1", name=kind.lower(), preserveResourcesOnDeletion=False) for kind in ("ConfigMap", "Secret")
    ]
    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(config_map(), secret, *rules, clusters=("m1", "m2")))
        keep(scene, "example.com/cleanup")
        _, planned = await scene.plan(fleet_of(*rules, clusters=("m1", "m2")))
        changes = tuple(
            replace(change, after=frozenset({APP})) if change.identity.kind == "Secret" else change
            for change in planned.plan.changes
        )
        first, second = (
            [i for i, one in enumerate(changes) if (one.identity.kind == "Secret") is late] for late in (False, True)
        )
        plan = replace(planned.plan, changes=changes, waves=(tuple(first), tuple(second)))
        acting = asyncio.create_task(scene.act(replace(planned, plan=plan)))
        while "deletionTimestamp" not in str(scene.live("m1")):
            await asyncio.sleep(0)
        assert scene.box["m1"].state.get("Secret", "demo", "follower") is not None
        keep(scene, None)
        assert {result.error for result in await acting} == {""}
        assert scene.box["m1"].state.get("Secret", "demo", "follower") is None


def keep(scene: Open, finalizer: str | None) -> None:
    body = {"metadata": {"finalizers": [finalizer] if finalizer else None}}
    path = "/api/v1/namespaces/demo/configmaps/app"
    ask(scene.box["m1"], "PATCH", path, body)
