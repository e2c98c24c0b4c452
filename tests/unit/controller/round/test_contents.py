"""Objects that are deleted together with a definition or a Namespace. Source: docs/concepts/deletion.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action
from reconciler.controller.round.dry_runs import Contents
from reconciler.planner import Round
from reconciler.sim import Fault, FaultKind
from tests.fakes.clocks import TestClock
from tests.fakes.members import Open, opened
from tests.fakes.worlds import config_map, fleet_of, policy

SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}


def rules(*, keep: bool) -> list[dict[str, Any]]:
    """The Namespace is deleted when it leaves; the ConfigMap in it is kept or not."""
    space = policy("Namespace", "m1", name="space", preserveResourcesOnDeletion=False)
    space["kind"] = "ClusterPropagationPolicy"
    del space["metadata"]["namespace"]
    return [space, policy("ConfigMap", "m1", preserveResourcesOnDeletion=keep)]


def without(*, keep: bool) -> Fleet:
    return fleet_of(*rules(keep=keep), clusters=("m1", "m2"))


async def counted(scene: Open, contents: Contents, fleet: Fleet) -> Round:
    _, planned = await scene.plan(fleet)
    return await contents.add(planned, scene.members, fleet.settings)


def messages(planned: Round) -> list[str]:
    return [problem.message for problem in planned.plan.problems if problem.code == "deletes-others"]


async def test_what_is_in_a_namespace_and_stays_otherwise_is_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(SPACE, config_map(), *rules(keep=True), clusters=("m1", "m2")))
        made = config_map("made")
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "foreign", "uid": "1"}
        scene.by_hand("m1", "POST", config_map("foreign"), "foreign")
        scene.by_hand("m1", "POST", {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}, "made")
        planned = await counted(scene, Contents(TestClock()), without(keep=True))
        told = (
            "1 ConfigMap (demo/foreign) that are not ours and 1 ConfigMap (demo/app) of ours that nothing else deletes"
        )
        assert messages(planned) == [f"deleting Namespace demo deletes {told} with it"]
        (change,) = [one for one in planned.plan.changes if one.action is Action.DELETE]
        assert change.reason is not None
        assert change.reason.text.endswith(f"it deletes {told} with it")


async def test_what_the_plan_deletes_anyway_is_not_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(SPACE, config_map(), *rules(keep=False), clusters=("m1", "m2")))
        assert messages(await counted(scene, Contents(TestClock()), without(keep=False))) == []


async def test_what_could_not_be_counted_is_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(SPACE, config_map(), *rules(keep=False), clusters=("m1", "m2")))
        _, planned = await scene.plan(without(keep=False))
        scene.box.servers["m1"].faults.order(Fault(kind=FaultKind.FORBIDDEN), times=200)
        (message,) = messages(await Contents(TestClock()).add(planned, scene.members, without(keep=False).settings))
        assert message.startswith("deleting Namespace demo deletes objects that could not be counted (")


async def test_contents_are_counted_again_only_after_a_while(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(fleet_of(SPACE, *rules(keep=False), clusters=("m1", "m2")))
        clock = TestClock()
        contents, fleet = Contents(clock), without(keep=False)
        assert messages(await counted(scene, contents, fleet)) == []
        scene.by_hand("m1", "POST", config_map("foreign"), "foreign")
        assert messages(await counted(scene, contents, fleet)) == []
        clock.advance(301)
        assert len(messages(await counted(scene, contents, fleet))) == 1
