"""A write whose answer was lost: its intent stays open until the object has been looked at. Source: ADR 7."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Intent
from reconciler.api.plan import Action
from reconciler.api.refs import Identity
from reconciler.controller.once import plan_once
from reconciler.controller.once.applying import apply_once
from reconciler.controller.round.recover import recover
from reconciler.sim import Fault, FaultKind, Request, is_write
from tests.fakes.members import Open, opened
from tests.fakes.worlds import config_map, fleet_of, policy
from tests.unit.controller.test_loop import running

APP = Identity("", "ConfigMap", "demo", "app")
LOST = (FaultKind.LOST_RESPONSE, FaultKind.TRUNCATED)
NOT_DONE = (FaultKind.RESET, FaultKind.INTERNAL, FaultKind.HTML)


def store(value: str = "1", *, keep: bool = False, is_there: bool = True, **spec: Any) -> Fleet:
    documents = [policy("ConfigMap", "m1", preserveResourcesOnDeletion=keep, **spec)]
    return fleet_of(*documents, *([config_map(value=value)] if is_there else []), clusters=("m1", "m2"))


def of_app(request: Request) -> bool:
    return is_write(request) and request.path.endswith("/app")


def late(request: Request) -> bool:
    return request.path.endswith("/late")


def deleted(request: Request) -> bool:
    return request.method == "DELETE" and request.path.endswith("/app")


async def stage(scene: Open, action: Action) -> Fleet:
    """Return the fleet that asks for the action, after making its preconditions."""
    if action is Action.CREATE:
        return store()
    if action is Action.ADOPT:
        await scene.apply(store(is_there=True))
        scene.by_hand("m1", "DELETE")
        scene.by_hand("m1", "POST", config_map(value="0"))
        scene.journal.remove_applied("m1", [APP])
        return store(conflictResolution="Overwrite")
    await scene.apply(store(keep=action is Action.RELEASE))
    return {
        Action.UPDATE: store("2"),
        Action.DELETE: store(is_there=False),
        Action.RELEASE: store(keep=True, is_there=False),
    }[action]


STAGED = (Action.CREATE, Action.UPDATE, Action.ADOPT, Action.DELETE, Action.RELEASE)


async def written(scene: Open, fleet: Fleet, action: Action, fault: FaultKind) -> list[Intent]:
    """Return what is open after the action met the fault."""
    _, planned = await scene.plan(fleet)
    assert action in [change.action for change in planned.plan.changes if change.identity == APP]
    scene.box.servers["m1"].faults.order(Fault(kind=fault), when=of_app, times=9)
    results = await scene.act(planned)
    assert [bool(result.error) for result in results if result.change.identity == APP] == [True]
    scene.box.servers["m1"].faults.clear()
    return list(scene.journal.open_intents().values())


@pytest.mark.parametrize("fault", [*LOST, *NOT_DONE])
@pytest.mark.parametrize("action", STAGED)
async def test_an_intent_stays_open_until_its_object_was_looked_at(
    tmp_path: Path, action: Action, fault: FaultKind
) -> None:
    async with opened(tmp_path) as scene:
        fleet = await stage(scene, action)
        (left,) = await written(scene, fleet, action, fault)
        assert (left.action, left.identity) == (action, APP)
        assert await recover(scene.journal, scene.members, fleet) == {"m1": {APP}}
        assert not scene.journal.open_intents()
        await scene.apply(fleet)
        _, planned = await scene.plan(fleet)
        assert [change.action for change in planned.plan.changes if change.identity == APP] == []
        live = scene.live("m1")
        assert (live is None) == (action is Action.DELETE)
        rows = scene.journal.applied("m1")
        if action in (Action.CREATE, Action.UPDATE, Action.ADOPT):
            assert live is not None
            assert rows[APP].uid == live["metadata"]["uid"]
        if action is Action.RELEASE:
            assert live is not None
            assert APP in scene.journal.released()["m1"]


@pytest.mark.parametrize("action", STAGED)
async def test_a_refusal_closes_the_intent(tmp_path: Path, action: Action) -> None:
    async with opened(tmp_path) as scene:
        assert await written(scene, await stage(scene, action), action, FaultKind.FORBIDDEN) == []


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("action", [Action.CREATE, Action.ADOPT])
async def test_what_a_lost_answer_left_goes_when_it_is_wanted_no_more(
    tmp_path: Path, action: Action, fault: FaultKind
) -> None:
    async with opened(tmp_path) as scene:
        fleet = await stage(scene, action)
        await written(scene, fleet, action, fault)
        gone = store(is_there=False)
        await recover(scene.journal, scene.members, gone)
        await scene.apply(gone)
        if action is Action.CREATE:
            assert scene.live("m1") is None


async def test_a_deletion_that_was_made_before_its_replacement_failed_is_looked_at(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store())
        _, planned = await scene.plan(store("2"))
        (change,) = [change for change in planned.plan.changes if change.identity == APP]
        waves = ((planned.plan.changes.index(change),),)
        changes = tuple(replace(c, action=Action.REPLACE) if c is change else c for c in planned.plan.changes)
        planned = replace(planned, plan=replace(planned.plan, changes=changes, waves=waves))
        for fault in (FaultKind.FORBIDDEN, FaultKind.LOST_RESPONSE):
            faults = scene.box.servers["m1"].faults
            faults.order(Fault(kind=fault), when=lambda request: of_app(request) and not deleted(request), times=1)
            (result,) = await scene.act(planned)
            assert result.error
            assert [found.action for found in scene.journal.open_intents().values()] == [Action.REPLACE]
            await recover(scene.journal, scene.members, store("2"))
            await scene.apply(store("1"))
            live = scene.live("m1")
            assert live is not None
            assert scene.journal.applied("m1")[APP].uid == live["metadata"]["uid"]
            _, again = await scene.plan(store("2"))
            (change,) = [change for change in again.plan.changes if change.identity == APP]
            changes = (replace(change, action=Action.REPLACE),)
            planned = replace(again, plan=replace(again.plan, changes=changes, waves=((0,),)))


@pytest.mark.parametrize("fault", LOST)
async def test_the_service_deletes_what_was_withdrawn_before_anybody_saw_that_it_was_made(
    tmp_path: Path, fault: FaultKind
) -> None:
    async with running(tmp_path) as scene:
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=fault), when=lambda request: is_write(request) and late(request))
        scene.app("1", "m1", name="late")
        await scene.until(lambda: scene.value("m1", "late") == "1")
        scene.put(late=None)
        await scene.until(lambda: scene.value("m1", "late") is None)
        await scene.until(lambda: not scene.journal.open_intents())


async def test_the_service_looks_again_until_it_has_seen(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:

        def read_late(request: Request) -> bool:
            return late(request) and not is_write(request) and scene.value("m1", "late") is not None

        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.TRUNCATED), when=lambda request: is_write(request) and late(request))
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=read_late, times=8)
        scene.app("1", "m1", name="late")
        await scene.until(lambda: scene.value("m1", "late") == "1")
        scene.put(late=None)
        await scene.until(lambda: scene.value("m1", "late") is None)
        await scene.until(lambda: not scene.journal.open_intents())


@pytest.mark.parametrize("fault", LOST)
async def test_apply_and_diff_look_at_what_an_earlier_apply_left_open(tmp_path: Path, fault: FaultKind) -> None:
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db")
        await apply_once(fleet_of(clusters=("m1", "m2")), access, lambda planned: True)
        scene.box.servers["m1"].faults.order(Fault(kind=fault), when=of_app, times=9)
        await apply_once(store(), access, lambda planned: True)
        scene.box.servers["m1"].faults.clear()
        assert scene.live("m1") is not None
        planned = await plan_once(store(is_there=False), access)
        assert [(c.action, c.held) for c in planned.plan.changes if c.identity == APP] == [(Action.DELETE, None)]
        await apply_once(store(is_there=False), access, lambda planned: True)
        assert scene.live("m1") is None
