"""Ticks in the control loop, on embedded clusters. Source: design#descheduler; design#failover; design#promise-8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.binding import Constraint, TargetCluster, Tick
from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import Action
from reconciler.controller.once import Access, plan_once
from reconciler.fleet import parse
from reconciler.journal import SharedOrdersTable
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import Part
from tests.tick_cases import template
from tests.unit.controller.ticking import ROUNDS, WEB, Ticking, Watcher, ticking
from tests.unit.sim.worlds import send

BOTH = {"m1": 8, "m2": 4}
"""m1 has more room, so that one copy goes there first."""


def one_copy(**failover: Any) -> dict[str, Any]:
    """Two replicas in one of the clusters; a second of illness is tolerated."""
    terms = {"decisionConditions": {"tolerationSeconds": 1}, **failover}
    return {"replicas": 2, "policy": {"division": "duplicated", "only": 1, "failover": terms}}


async def fall_ill(scene: Ticking, **failover: Any) -> None:
    """`web` runs in m1, and then its pods there are not ready any more."""
    scene.web(**one_copy(**failover))
    await scene.until(lambda: scene.ready() == {"m1": 2})
    scene.set_well("m1", is_well=False)


def said(caplog: pytest.LogCaptureFixture, event: str) -> int:
    return sum(getattr(record, "event", "") == event for record in caplog.records)


async def test_an_application_that_is_broken_moves(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        known: list[tuple[Constraint, ...]] = []
        await fall_ill(scene, purgeMode="Immediately")
        scene.box["m2"].on_change.append(
            lambda: known.append(scene.journal.constraints()) if "m2" in scene.replicas() else None
        )
        await scene.until(lambda: scene.ready() == {"m2": 2})
        assert [found.cluster for found in known[0]] == ["m1"], "recorded before anything was written"
        (exclusion,) = scene.journal.constraints()
        assert (exclusion.tick, exclusion.identity, exclusion.excludes) == (Tick.FAILOVER, WEB, True)
        kinds = [(event.kind, event.subject) for event in scene.journal.events() if "constrain" in event.kind]
        assert kinds == [("constrained", "Deployment demo/web @ m1")]


async def test_an_exclusion_survives_a_restart(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        await fall_ill(scene, purgeMode="Immediately")
        await scene.until(lambda: scene.ready() == {"m2": 2})
        await scene.stop()
        before = scene.journal.constraints()
        scene.set_well("m1", is_well=True)
        scene.box["m2"].set_capacity("n1", cpu="1")
        scene.restart()
        scene.web(**{**one_copy(purgeMode="Immediately"), "replicas": 3})
        await scene.until(lambda: scene.replicas() == {"m2": 3})
        assert scene.journal.constraints() == before


async def test_how_long_an_application_has_been_ill_survives_a_restart(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        await fall_ill(scene, decisionConditions={"tolerationSeconds": 3000})
        await scene.until(scene.is_known_ill)
        await scene.stop()
        before = scene.ill_since()
        scene.restart()
        await scene.rounds()
        assert scene.ill_since() == before
        assert scene.replicas() == {"m1": 2}
        scene.clock.jump(3000)
        await scene.until(lambda: scene.ready().get("m2") == 2)


async def test_what_a_tick_would_do_later_is_shown_beforehand(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        await fall_ill(scene, decisionConditions={"tolerationSeconds": 3000})
        await scene.until(scene.is_known_ill)
        await scene.stop()
        scene.source.forget()
        snapshot = await scene.source.read()
        assert snapshot is not None
        access = Access(
            kubeconfig=scene.box.kubeconfig, journal=scene.path, clock=scene.clock, interpreters=BUILT_IN_KINDS
        )
        now = await plan_once(parse(snapshot), access)
        later = await plan_once(parse(snapshot), access, at=scene.clock.later(3600))
        changes = [(change.action, change.cluster) for change in later.plan.changes if change.identity == WEB]
        assert [change for change in now.plan.changes if change.identity == WEB] == []
        assert changes == [(Action.DELETE, "m1"), (Action.CREATE, "m2")]
        assert scene.journal.constraints() == ()


async def test_graciously_the_old_copy_goes_when_the_new_one_is_healthy(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        seen: list[dict[str, int]] = []
        await fall_ill(scene)
        for name in scene.box.names:
            scene.box[name].on_change.append(lambda: seen.append(scene.ready()))
        await scene.until(lambda: scene.ready() == {"m2": 2})
        assert next(ready for ready in seen if "m1" not in ready)["m2"] == 2


async def test_graciously_a_copy_that_recovers_in_time_gets_back_what_it_had(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH, never_ready="m2") as scene:
        await fall_ill(scene)
        await scene.until(lambda: scene.replicas() == {"m1": 2, "m2": 2})
        assert scene.excluded() == ["m1"]
        scene.set_well("m1", is_well=True)
        await scene.until(lambda: scene.replicas() == {"m1": 2})
        await scene.until(lambda: scene.excluded() == [])
        assert scene.journal.previous_placements()[WEB].targets == (TargetCluster("m1", 2),)
        found = [event for event in scene.journal.events() if event.kind in ("constrained", "freed")]
        assert sorted((event.kind, event.data["tick"]) for event in found) == [
            ("constrained", "failover"),
            ("constrained", "recovery"),
            ("freed", "failover"),
            ("freed", "recovery"),
        ]
        await scene.rounds()
        assert scene.ready() == {"m1": 2}


async def test_what_took_over_for_nothing_goes_also_where_an_edit_would_release_it(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH, never_ready="m2") as scene:
        case = one_copy()
        case["policy"] |= {"karmada": True, "keep": True}
        scene.web(**case)
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.replicas() == {"m1": 2, "m2": 2})
        scene.set_well("m1", is_well=True)
        await scene.until(lambda: scene.replicas() == {"m1": 2})
        released = [event.subject for event in scene.journal.events(kind="released")]
        assert not any(subject.startswith("Deployment") for subject in released), released


@pytest.mark.parametrize("grace_s", [100, 600, 900])
async def test_graciously_the_old_copy_goes_after_a_while_when_the_new_pods_have_nodes(
    tmp_path: Path, grace_s: int
) -> None:
    async with ticking(tmp_path, BOTH, never_ready="m2") as scene:
        await fall_ill(scene, gracePeriodSeconds=grace_s)
        await scene.until(lambda: scene.replicas() == {"m1": 2, "m2": 2})
        await scene.rounds(2)
        assert scene.replicas() == {"m1": 2, "m2": 2}
        scene.clock.jump(grace_s)
        await scene.until(lambda: scene.replicas() == {"m2": 2})


async def test_graciously_the_old_copy_stays_while_no_scheduler_has_looked_at_the_new_pods(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.box["m2"].let_sleep(Part.SCHEDULER)
        await fall_ill(scene, gracePeriodSeconds=100)
        await scene.until(lambda: scene.replicas() == {"m1": 2, "m2": 2})
        scene.clock.jump(1000)
        await scene.rounds(8)
        assert scene.replicas() == {"m1": 2, "m2": 2}
        scene.box["m2"].let_sleep()
        await scene.until(lambda: scene.replicas() == {"m2": 2})


async def test_under_never_the_old_copy_stays_until_a_person_evicts_it(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        await fall_ill(scene, purgeMode="Never")
        await scene.until(lambda: scene.ready() == {"m1": 0, "m2": 2})
        scene.clock.jump(100_000)
        await scene.rounds()
        scene.set_well("m1", is_well=True)
        await scene.rounds()
        assert scene.replicas() == {"m1": 2, "m2": 2}
        scene.evict("m1")
        await scene.until(lambda: scene.replicas() == {"m2": 2})
        scene.clock.jump(10_000)
        await scene.rounds()
        assert scene.replicas() == {"m2": 2}, "it does not come back when the order has ended"


async def fail_with_nowhere_to_go(scene: Ticking, caplog: pytest.LogCaptureFixture) -> None:
    """A broken application that fits in one cluster alone; returns once that was told."""
    scene.web(replicas=2, cpu=2, policy={"failover": {"decisionConditions": {"tolerationSeconds": 1}}})
    await scene.until(lambda: scene.ready() == {"m1": 2})
    scene.set_well("m1", is_well=False)
    await scene.until(lambda: said(caplog, "FailoverNowhere") == 1)


async def test_what_can_go_nowhere_stays_and_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 1}) as scene:
        await fail_with_nowhere_to_go(scene, caplog)
        before = scene.writes()
        await scene.rounds()
        assert scene.journal.constraints() == ()
        assert (scene.writes(), said(caplog, "FailoverNowhere"), said(caplog, "FailedOver")) == (before, 1, 0)
        scene.box["m2"].set_capacity("n1", cpu="8")
        await scene.until(lambda: scene.ready() == {"m2": 2})
        assert said(caplog, "FailedOver") == 1


async def test_what_was_told_is_not_told_again_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 1}) as scene:
        await fail_with_nowhere_to_go(scene, caplog)
        await scene.stop()
        scene.restart()
        await scene.rounds()
        assert said(caplog, "FailoverNowhere") == 1
        scene.set_well("m1", is_well=True)
        await scene.until(lambda: scene.ready() == {"m1": 2})
        await scene.until(lambda: not any("web" in name for name in scene.journal.timers()))
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: said(caplog, "FailoverNowhere") == 2)


async def test_in_advise_mode_nothing_moves_and_it_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ticking(tmp_path, BOTH, settings={"failover": {"mode": "advise"}}) as scene:
        await fall_ill(scene)
        await scene.until(lambda: said(caplog, "FailoverAdvised") == 1)
        before = scene.writes()
        await scene.rounds()
        assert (scene.writes(), said(caplog, "FailoverAdvised"), scene.excluded()) == (before, 1, [])


async def test_in_observe_mode_no_tick_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.web(**one_copy())
        await scene.until(lambda: scene.ready() == {"m1": 2})
        await scene.quiet()
        scene.settings = {"mode": "observe"}
        scene.put()
        scene.set_well("m1", is_well=False)
        before = scene.writes()
        await scene.until(scene.is_known_ill)
        scene.clock.jump(3000)
        await scene.rounds()
        assert (scene.writes(), scene.excluded(), said(caplog, "FailedOver")) == (before, [], 0)


async def deschedule(scene: Ticking, **case: Any) -> None:
    """`web` runs in both clusters, and then new pods of it find no node in m1."""
    scene.web(replicas=4, **case)
    await scene.until(lambda: sum(scene.ready().values()) == 4 and len(scene.ready()) == 2)
    scene.box["m1"].set_capacity("n1", cpu="0")
    scene.web(replicas=4, image="nginx:2", **case)


async def test_replicas_that_find_no_node_move(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        await deschedule(scene)
        await scene.until(lambda: scene.ready() == {"m2": 4})
        (cap,) = scene.journal.constraints()
        assert (cap.tick, cap.cluster, cap.replicas_max) == (Tick.DESCHEDULING, "m1", 0)


async def test_a_quiet_fleet_with_a_cap_is_not_written_to_nor_is_the_journal(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        await deschedule(scene)
        await scene.until(lambda: scene.ready() == {"m2": 4})
        await scene.quiet()
        await scene.rounds()
        watcher = Watcher(scene.path)
        try:
            before = (scene.writes(), watcher.version)
            await scene.rounds(2 * ROUNDS)
            assert (scene.writes(), watcher.version) == before
            assert scene.excluded() == ["m1"]
        finally:
            watcher.close()


async def test_the_end_of_a_cap_moves_nothing(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        await deschedule(scene)
        await scene.until(lambda: scene.ready() == {"m2": 4})
        scene.box["m1"].set_capacity("n1", cpu="8")
        await scene.rounds()
        assert scene.excluded() == ["m1"], "a cap stays for ten minutes"
        scene.clock.jump(600)
        await scene.until(lambda: scene.excluded() == [])
        await scene.rounds()
        assert scene.replicas() == {"m2": 4}


async def test_an_edit_of_the_policy_ends_a_cap(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        await deschedule(scene)
        await scene.until(lambda: scene.ready() == {"m2": 4})
        scene.box["m1"].set_capacity("n1", cpu="8")
        await scene.rounds()
        assert scene.excluded() == ["m1"]
        scene.web(replicas=4, image="nginx:2", policy={"affinity": ["m1"]})
        await scene.until(lambda: scene.ready() == {"m1": 4})
        await scene.until(lambda: scene.excluded() == [])


async def test_a_person_evicts_a_copy_and_lets_it_come_back(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        scene.web(replicas=2, policy={"division": "duplicated"})
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
        scene.evict("m1")
        await scene.until(lambda: scene.replicas() == {"m2": 2})
        await scene.quiet()
        scene.readmit("m1")
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})


async def test_an_order_that_comes_in_during_a_round_is_not_missed(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        orders: list[str] = []

        def order() -> None:
            if not orders and scene.replicas():
                orders.append("m1")
                scene.evict("m1")

        scene.box["m2"].on_change.append(order)
        scene.web(replicas=2, policy={"division": "duplicated"})
        await scene.until(lambda: scene.ready() == {"m2": 2})
        assert orders


async def test_replicas_of_an_evicted_copy_go_to_others_first(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        scene.web(replicas=4)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
        seen: list[int] = []
        for name in scene.box.names:
            scene.box[name].on_change.append(lambda: seen.append(sum(scene.ready().values())))
        scene.evict("m1")
        await scene.until(lambda: scene.ready() == {"m2": 4})
        assert min(seen) == 4


async def test_an_eviction_that_ends_is_noticed_without_another_event(tmp_path: Path) -> None:
    async with ticking(tmp_path, BOTH) as scene:
        terms = {"division": "duplicated", "failover": {}}
        scene.web(replicas=2, policy=terms)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
        scene.evict("m1")
        await scene.until(lambda: scene.replicas() == {"m2": 2})
        await scene.quiet()
        scene.clock.jump(600)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})


async def test_an_evicted_copy_that_can_go_nowhere_stays(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 1}) as scene:
        scene.web(replicas=2, cpu=2)
        await scene.until(lambda: scene.ready() == {"m1": 2})
        await scene.quiet()
        before = scene.writes()
        scene.evict("m1")
        await scene.rounds()
        assert (scene.replicas(), scene.writes()) == ({"m1": 2}, before)
        scene.box["m2"].set_capacity("n1", cpu="8")
        await scene.until(lambda: scene.ready() == {"m2": 2})


THREE = {"m1": 8, "m2": 6, "m3": 4}


async def test_failover_leaves_out_a_cluster_that_a_person_suspended(tmp_path: Path) -> None:
    async with ticking(tmp_path, THREE) as scene:
        scene.web(**one_copy(purgeMode="Immediately"))
        await scene.until(lambda: scene.ready() == {"m1": 2})
        with SharedOrdersTable(scene.path) as book:
            book.suspend(SuspensionRecord(scope="cluster m2", who="anna"))
        scene.wake()
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready() == {"m3": 2})


async def test_failover_leaves_out_a_cluster_where_an_object_stands_in_the_way(tmp_path: Path) -> None:
    async with ticking(tmp_path, THREE) as scene:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
        made = send(scene.box["m2"], "POST", "/api/v1/namespaces", namespace)
        assert made.status == 201, made.body
        foreign = template("web", {"replicas": 1})
        made = send(scene.box["m2"], "POST", "/apis/apps/v1/namespaces/demo/deployments", foreign)
        assert made.status == 201, made.body
        scene.web(**one_copy(purgeMode="Immediately"))
        await scene.until(lambda: scene.ready().get("m1") == 2)
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready().get("m3") == 2 and "m1" not in scene.replicas())
        assert scene.replicas() == {"m2": 1, "m3": 2}
