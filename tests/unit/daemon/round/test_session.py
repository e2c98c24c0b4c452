"""One-shot use of the members: what `apply` tells of changes that it could not even begin."""

from __future__ import annotations

from pathlib import Path

from reconciler.daemon.round.act import Result
from reconciler.daemon.round.session import Access, apply_once, plan_once
from reconciler.interpreters.registry import BUILT_IN_KINDS
from reconciler.model.fleet import Fleet
from reconciler.sim import Fault, FaultKind, is_write
from tests.fakes.clocks import QuickClock
from tests.fakes.members import opened
from tests.fakes.worlds import config_map, fleet_of, policy


async def test_changes_of_a_cluster_that_cannot_be_held_have_failed(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        faults = scene.box.servers["m2"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_write, times=100)
        access = Access(
            kubeconfig=scene.box.kubeconfig,
            journal=tmp_path / "journal.db",
            clock=QuickClock(),
            interpreters=BUILT_IN_KINDS,
        )
        told: list[Result] = []
        applied = await apply_once(fleet, access, lambda planned: True, told.append)
        assert scene.live("m1", "app") is not None
    by_cluster = {name: [r.error for r in applied.results if r.change.cluster == name] for name in ("m1", "m2")}
    assert by_cluster["m1"] == ["", ""]
    assert len(by_cluster["m2"]) == 2
    assert all(error.startswith("the fleet cannot be held there: ") for error in by_cluster["m2"])
    assert len(told) == 4


async def test_applying_again_and_again_gets_no_further_than_one_plan(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(8)]

    def store(kept: list[str]) -> Fleet:
        own = [policy("ConfigMap", "m1", name=name, preserveResourcesOnDeletion=False) for name in kept]
        for found, name in zip(own, kept, strict=True):
            found["spec"]["resourceSelectors"][0]["name"] = name
        return fleet_of(*(config_map(name) for name in kept), *own, clusters=("m1", "m2"))

    async with opened(tmp_path / "scene") as scene:
        access = Access(
            kubeconfig=scene.box.kubeconfig,
            journal=tmp_path / "journal.db",
            clock=QuickClock(),
            interpreters=BUILT_IN_KINDS,
        )
        applied = await apply_once(store(names), access, lambda planned: True)
        for number in range(1, 9):
            applied = await apply_once(store(names[number:]), access, lambda planned: True)
        assert [name for name in names if scene.live("m1", name) is not None] == names[3:]
        # The plan alone says the same.
        planned = await plan_once(store([]), access)
        assert planned.plan.held_digest == applied.round.plan.held_digest != ""
        assert {change.held for change in planned.plan.changes} == {
            "guard: 8 deletions and releases in one cluster within 10m, 3 of them made already, at most 3 pass"
        }
