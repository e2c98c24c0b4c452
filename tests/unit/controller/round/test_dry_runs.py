"""The API server is asked where the comparison does not vouch for its answer. Source: design#dry-run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.content import with_value
from reconciler.api.plan import Action, Cause, Change, Engine, HeldBy, Hold
from reconciler.api.refs import Identity
from reconciler.controller import timing
from reconciler.controller.retries.caches import RetryQueue
from reconciler.controller.round.apply_plan import not_held
from reconciler.controller.round.dry_runs import dry_run
from reconciler.errors import MemberClusterError
from reconciler.planner import Round
from reconciler.sim import Fault, FaultKind, is_write
from tests.fakes.admitting_server import let_admit
from tests.fakes.clocks import TestClock
from tests.fakes.members import Open, opened
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")


async def judged(scene: Open, engine: str) -> tuple[Round, Round]:
    """The round for an edit of the store, compared by `engine`, before and after the dry runs."""
    rule = policy("ConfigMap", "m1")
    await scene.apply(fleet_of(config_map(a="1"), rule, clusters=("m1", "m2")))
    reading, planned = await scene.plan(fleet_of(config_map(a="2"), rule, clusters=("m1", "m2")))
    (change,) = planned.plan.changes
    planned = replace(planned, plan=replace(planned.plan, changes=(replace(change, engine=Engine(engine)),)))
    return planned, await dry_run(planned, scene.members, reading.snapshot)


def asked(scene: Open) -> int:
    return sum(entry.is_dry_run for entry in scene.box["m1"].audit)


def the_change(found: Round) -> Change:
    (change,) = found.plan.changes
    return change


def test_a_difference_that_is_not_vouched_for_is_for_the_api_server() -> None:
    """Fields that were recorded in another version may have other names there."""
    bed, rule = TestBed(), policy("Deployment", "m1")
    bed.run(fleet_of(deployment(), rule))
    edited = deployment()
    edited["spec"]["minReadySeconds"] = 1
    assert the_change(bed.plan(fleet_of(edited, rule))).engine == "T"
    metadata = bed.objects["m1"][WEB].body["metadata"]
    (entry,) = metadata["managedFields"]
    bed.edit("m1", WEB, metadata={**metadata, "managedFields": [{**entry, "apiVersion": "apps/v1beta2"}]})
    assert the_change(bed.plan(fleet_of(edited, rule))).engine == "S"


async def test_the_api_server_is_asked_for_what_is_not_vouched_for_and_for_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await judged(scene, "T")
        assert asked(scene) == 0
        _, after = await judged(scene, "S")
        assert asked(scene) == 1
        assert [field.path for field in the_change(after).fields] == ["data.a"]
        live = scene.live("m1")
        assert live is not None
        assert live["data"] == {"a": "1"}, "nothing was written"


async def test_a_comparison_needs_the_right_to_read_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        rule = policy("ConfigMap", "m1")
        await scene.apply(fleet_of(config_map(a="1"), rule, clusters=("m1", "m2")))
        for name in scene.box.names:
            scene.box.servers[name].faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_write, times=1000)
        reading, planned = await scene.plan(fleet_of(config_map(a="2"), rule, clusters=("m1", "m2")))
        planned = await dry_run(planned, scene.members, reading.snapshot)
        assert (the_change(planned).engine, planned.plan.is_complete) == ("T", True)
        assert [scene.box.servers[name].faults.struck for name in scene.box.names] == [[], []]


@pytest.mark.parametrize("kind", [FaultKind.FORBIDDEN, FaultKind.RESET])
async def test_where_it_may_not_be_asked_the_answer_of_the_comparison_stands(tmp_path: Path, kind: FaultKind) -> None:
    async with opened(tmp_path) as scene:
        await judged(scene, "T")
        scene.box.servers["m1"].faults.order(
            Fault(kind=kind), when=lambda found: is_write(found) and "dryRun" in found.query, times=10
        )
        before, after = await judged(scene, "S")
        assert the_change(after) == the_change(before)
        assert after.plan.waves == before.plan.waves


async def test_what_the_cluster_would_change_again_stays_due(tmp_path: Path) -> None:
    """Its webhook makes of the dry run what is there already: nothing would change, and it is not as wanted."""

    def theirs(body: dict[str, Any]) -> None:
        body["data"]["a"] = "theirs"

    async with opened(tmp_path) as scene:
        fleet = fleet_of(config_map(a="1"), policy("ConfigMap", "m1"), clusters=("m1", "m2"))
        await scene.apply(fleet)
        server = await let_admit(scene.box, "m1")
        scene.by_hand("m1", "PATCH", {"data": {"a": "theirs"}})
        for webhook in (theirs, None):
            server.webhook = webhook
            reading, planned = await scene.plan(fleet)
            planned = await dry_run(planned, scene.members, reading.snapshot, every=True)
            assert [field.path for field in the_change(planned).fields] == ["data.a"]


async def test_what_the_comparison_called_drift_is_drift_when_the_api_server_was_asked(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        fleet = fleet_of(config_map(a="1"), policy("ConfigMap", "m1"), clusters=("m1", "m2"))
        await scene.apply(fleet)
        scene.by_hand("m1", "PATCH", {"data": {"a": "9"}})
        reading, planned = await scene.plan(fleet)
        planned = await dry_run(planned, scene.members, reading.snapshot, every=True)
        change = the_change(planned)
        assert (change.engine, change.cause) == ("S", "drift")
        assert [field.cause for field in change.fields] == ["drift"]


async def test_a_refused_update_waits_for_others_whatever_it_came_from(tmp_path: Path) -> None:
    """The store does not say that such drift is left as it is."""

    def invalid(body: dict[str, Any]) -> None:
        body["data"]["a/b"] = "a key that no ConfigMap may have"

    async with opened(tmp_path) as scene:
        rule = policy("ConfigMap", "m1")
        fleet, other = (fleet_of(config_map(a=a), rule, clusters=("m1", "m2")) for a in "12")
        await scene.apply(fleet)
        server = await let_admit(scene.box, "m1")
        server.webhook = invalid
        scene.by_hand("m1", "PATCH", {"data": {"a": "9"}})
        for wanted, cause in (fleet, Cause.DRIFT), (other, Cause.DECLARED):
            reading, planned = await scene.plan(wanted)
            planned = await dry_run(planned, scene.members, reading.snapshot, every=True)
            change = the_change(planned)
            assert (change.cause, change.hold) == (cause, Hold(HeldBy.OTHERS, "the API server would refuse it"))
            assert {found.code for found in planned.plan.problems} == {"refused-by-api-server"}


async def test_an_update_that_failed_is_asked_for_and_held_where_it_is_not_made_in_place(tmp_path: Path) -> None:
    """As an update would be that no table knows to be impossible: here the table is not asked."""
    async with opened(tmp_path) as scene:
        rule = policy("Deployment", "m1")
        await scene.apply(fleet_of(deployment(), rule, clusters=("m1", "m2")))
        edited = deployment()
        edited["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        reading, planned = await scene.plan(fleet_of(edited, rule, clusters=("m1", "m2")))
        unknown = replace(the_change(planned), action=Action.UPDATE, hold=None)
        planned = replace(planned, plan=replace(planned.plan, changes=(unknown,)))
        before = await dry_run(planned, scene.members, reading.snapshot)
        assert the_change(before).action is Action.UPDATE
        after = await dry_run(planned, scene.members, reading.snapshot, is_asked_first=lambda change: True)
        assert the_change(after).action is Action.REPLACE
        assert "spec.selector cannot be changed in place" in (the_change(after).held or "")
        # What is being deleted is made again by itself: nothing is deleted once more, nor waited for.
        member = reading.snapshot.members["m1"]
        assert isinstance(member, Read)
        live = member.objects[WEB]
        body = with_value(live.body, ("metadata", "deletionTimestamp"), "2026-11-21T10:00:00Z")
        ending = replace(member, objects={**member.objects, WEB: replace(live, body=body)})
        snapshot = replace(reading.snapshot, members={**reading.snapshot.members, "m1": ending})
        at_last = the_change(await dry_run(planned, scene.members, snapshot, is_asked_first=lambda change: True))
        assert at_last.action is Action.REPLACE
        assert at_last.hold is not None and at_last.hold.by is HeldBy.OTHERS and "is being deleted" in at_last.hold.why
        memory = RetryQueue(TestClock())
        memory.follow([WEB], after.plan.changes, (), lambda cluster, identity: True)
        assert memory.is_asked_first(unknown), "it is asked in each round, and never sent"
        memory.follow([WEB], (), (), lambda cluster, identity: True)
        assert not memory.is_asked_first(unknown)


async def test_nothing_is_asked_of_an_update_that_failed_while_its_pause_lasts(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        before, _ = await judged(scene, "T")
    clock = TestClock()
    change, memory = the_change(before), RetryQueue(clock)
    memory.retry(change, is_paced=True)
    assert not memory.is_asked_first(change)
    assert memory.is_asked_first(replace(change, manifest_digest="another")), "a commit waits for no pause"
    clock.advance(timing.RETRY_BACK_OFF.least_s)
    assert memory.is_asked_first(change)


async def test_nothing_is_asked_of_an_update_that_was_not_even_sent(tmp_path: Path) -> None:
    """As where a copy of the journal holds the fleet: each round would ask, and nothing could be written."""
    async with opened(tmp_path) as scene:
        before, _ = await judged(scene, "T")
    clock = TestClock()
    change, memory = the_change(before), RetryQueue(clock)
    (unsent,) = not_held([change], MemberClusterError("m1", "another journal holds the fleet"))
    memory.retry(change, is_paced=unsent.is_paced, is_sent=unsent.is_sent)
    memory.requeue_change("m2", change.identity, 60.0)
    clock.advance(600.0)
    for cluster in ("m1", "m2"):
        assert not memory.is_asked_first(replace(change, cluster=cluster))
    memory.retry(change, is_paced=False)
    assert memory.is_asked_first(change)


async def test_an_update_that_failed_for_another_reason_is_tried_again_as_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        before, _ = await judged(scene, "T")
        reading, _ = await scene.plan(fleet_of(config_map(a="2"), policy("ConfigMap", "m1"), clusters=("m1", "m2")))
        after = await dry_run(before, scene.members, reading.snapshot, is_asked_first=lambda change: True)
        assert the_change(after) == the_change(before)
