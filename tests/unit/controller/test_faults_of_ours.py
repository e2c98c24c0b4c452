"""Faults of the program in places of the loop that work on one of many: that one fails, all others go on.

Source: design#boundaries; design#promise-7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.plan import Change
from reconciler.controller import timetable as ticks
from reconciler.controller.cluster_reads import read_clusters as reading
from reconciler.controller.round import apply_plan, dry_runs, recover
from reconciler.controller.round.send_change import perform
from reconciler.controller.watches.kind_watches import ClusterWatches
from reconciler.documents import schema_of_openapi
from reconciler.kube import MemberCluster
from reconciler.planner import losses_of
from reconciler.scheduler import propose
from reconciler.server.metrics import exposition
from tests.fakes.raising import InterpreterFault
from tests.unit.controller.test_loop import Running, running

PROMPTLY_S = 20


class Faulty:
    """A fault of ours, as long as it is on, wherever `concerns` says so. It counts how often it struck."""

    def __init__(self, concerns: Callable[..., bool] = lambda *args: True) -> None:
        self.concerns, self.is_on, self.struck = concerns, True, 0

    def strike(self, *args: Any) -> None:
        if self.is_on and self.concerns(*args):
            self.struck += 1
            raise InterpreterFault("hunter2")

    def before(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*args: Any, **more: Any) -> Any:
            self.strike(*args)
            return work(*args, **more)

        return struck

    def before_awaiting(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def struck(*args: Any, **more: Any) -> Any:
            self.strike(*args)
            return await work(*args, **more)

        return struck

    def after_awaiting(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def struck(*args: Any, **more: Any) -> Any:
            found = await work(*args, **more)
            self.strike(*args)
            return found

        return struck


def of_app(member: MemberCluster, change: Change, *_: Any) -> bool:
    return (member.name, change.identity.name) == ("m2", "app")


def in_m2(*args: Any) -> bool:
    return any(getattr(arg, "name", arg) == "m2" for arg in args)


def internal(scene: Running) -> list[str]:
    return [problem.message for problem in scene.vitals.snapshot.problems if problem.code == "internal-error"]


def gauge(scene: Running) -> str:
    lines = exposition(scene.vitals, 0.0).decode().splitlines()
    return next(line for line in lines if line.startswith("fleet_reconciler_internal_errors "))


def failed(scene: Running) -> list[dict[str, Any]]:
    document: Any = scene.journal.state() or {}
    return list(document["failed"])


async def follows(scene: Running, value: str, name: str = "other") -> None:
    """A commit reaches both clusters."""
    scene.app(value, "m1", "m2", name=name)
    await scene.until(lambda: {scene.value(each, name) for each in ("m1", "m2")} == {value}, timeout_s=PROMPTLY_S)


async def test_a_change_fails_by_itself_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Faulty(of_app)
    monkeypatch.setattr(apply_plan, "perform", fault.before_awaiting(perform))
    async with running_after(tmp_path, fault) as scene:
        scene.app("2", "m1", "m2")
        await scene.until(lambda: fault.struck > 0 and scene.value("m1") == "2")
        await follows(scene, "1")
        await scene.until(lambda: bool(internal(scene)))
        (message,) = internal(scene)
        assert message.startswith("ConfigMap demo/app: a fault of the program (InterpreterFault at ")
        assert {problem.cluster for problem in scene.vitals.snapshot.problems} == {"m2"}
        assert gauge(scene).endswith(" 1.0")
        (entry,) = failed(scene)
        assert (entry["cluster"], entry["resource"]["name"]) == ("m2", "app")
        assert entry["error"].startswith("internal-error: ")
        await scene.until(lambda: fault.struck >= 3)
        assert len(internal(scene)) == 1
        fault.is_on = False
        await scene.until(lambda: scene.value("m2") == "2")
        await scene.until(lambda: not internal(scene) and not failed(scene))
        assert gauge(scene).endswith(" 0.0")
    faults = [record for record in caplog.records if getattr(record, "event", "") == "InternalError"]
    told = [(record.__dict__["cluster"], "InterpreterFault" in record.__dict__["error"]) for record in faults]
    assert told == [("m2", True)]
    assert "hunter2" not in caplog.text


async def test_the_pauses_between_tries_of_a_change_that_fails_by_a_fault_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, tried_s = Faulty(of_app), list[float]()
    async with running_after(tmp_path, fault) as scene:
        clock = scene.parts.access.clock

        async def noted(member: MemberCluster, change: Change, *more: Any) -> Any:
            if of_app(member, change):
                tried_s.append(clock.monotonic_s())
            fault.strike(member, change)
            return await perform(member, change, *more)

        monkeypatch.setattr(apply_plan, "perform", noted)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: len(tried_s) >= 5)
    pauses_s = [after - before for before, after in pairwise(tried_s)]
    # A busy machine makes pauses longer, never shorter.
    assert all(pause_s >= 2.0 * 2**tries for tries, pause_s in enumerate(pauses_s)), pauses_s


async def test_what_a_fault_left_unknown_is_looked_at_though_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty(of_app)
    monkeypatch.setattr(apply_plan, "perform", fault.after_awaiting(perform))
    async with running_after(tmp_path, fault) as scene:
        scene.app("2", "m1", "m2")
        await scene.until(lambda: fault.struck > 0)
        await scene.until(lambda: not scene.journal.open_intents() and not internal(scene) and not failed(scene))
        assert scene.value("m2") == "2"
        assert fault.struck == 1


async def test_an_object_that_was_made_and_cannot_be_recorded_is_known_by_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty(lambda change, *_: (change.cluster, change.identity.name) == ("m2", "new"))
    monkeypatch.setattr(apply_plan, "applied_row", fault.before(apply_plan.applied_row))
    async with running_after(tmp_path, fault) as scene:
        scene.app("1", "m1", "m2", name="new")
        await scene.until(lambda: fault.struck > 0)
        await scene.until(lambda: any(found.name == "new" for found in scene.journal.applied("m2")))
        # It can be deleted, since the journal knows it.
        scene.put(new=None)
        await scene.until(lambda: scene.value("m2", "new") is None and scene.value("m1", "new") is None)


async def test_a_fault_around_the_changes_of_a_cluster_is_that_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty(lambda changes, *_: any(change.cluster == "m2" for change in changes))
    monkeypatch.setattr(apply_plan, "losses_of", fault.before(losses_of))
    async with running_after(tmp_path, fault) as scene:
        scene.app("2", "m1", "m2")
        await scene.until(lambda: fault.struck > 0 and scene.value("m1") == "2")
        await scene.until(lambda: bool(internal(scene)))
        fault.is_on = False
        await scene.until(lambda: scene.value("m2") == "2" and not internal(scene))


async def test_a_fault_in_the_hold_of_a_cluster_is_that_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty()
    async with running_after(tmp_path, fault) as scene:
        holder = scene.parts.holder
        fault.concerns = in_m2
        monkeypatch.setattr(holder, "_hold", fault.before_awaiting(holder._hold))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: fault.struck > 0 and scene.value("m1") == "2")
        await scene.until(lambda: any("internal-error" in entry["error"] for entry in failed(scene)))
        fault.is_on = False
        await scene.until(lambda: scene.value("m2") == "2")


@pytest.mark.parametrize("name", ["get", "openapi", "identity", "discover", "list_objects"])
async def test_a_client_that_raises_for_one_cluster_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fault = Faulty(in_m2)
    async with running_after(tmp_path, fault) as scene:
        monkeypatch.setattr(MemberCluster, name, fault.before_awaiting(getattr(MemberCluster, name)))
        scene.loop.wake()
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2", timeout_s=PROMPTLY_S)
        scene.app("3", "m1", name="of-m1")
        await scene.until(lambda: scene.value("m1", "of-m1") == "3", timeout_s=PROMPTLY_S)
        fault.is_on = False
        await scene.until(lambda: scene.value("m2") == "2")


async def test_a_watch_that_fails_by_a_fault_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Faulty(lambda watches, *_: in_m2(watches.member))
    monkeypatch.setattr(ClusterWatches, "_stream", fault.before_awaiting(ClusterWatches._stream))
    async with running_after(tmp_path, fault) as scene:
        scene.box.servers["m2"].break_connections()
        await scene.until(lambda: fault.struck > 1)
        fault.is_on = False
        scene.by_hand("m2", "theirs")
        await scene.until(lambda: scene.value("m2") == "1")
    assert [record for record in caplog.records if getattr(record, "event", "") == "InternalError" and record.exc_info]


async def test_a_tick_that_fails_by_a_fault_leaves_placements_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Faulty()
    monkeypatch.setattr(ticks, "propose", fault.before(propose))
    async with running_after(tmp_path, fault) as scene:
        scene.loop.wake()
        await scene.until(lambda: fault.struck > 0)
        await follows(scene, "2")
    faults = [record for record in caplog.records if getattr(record, "event", "") == "InternalError"]
    assert len(faults) == 1


async def test_a_dry_run_whose_answer_brings_a_fault_out_leaves_the_comparison_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty(lambda change, member, *_: member.name == "m2")
    monkeypatch.setattr(dry_runs, "_ask", fault.before_awaiting(dry_runs._ask))
    async with running_after(tmp_path, fault) as scene:
        asked = dry_runs.dry_run
        monkeypatch.setattr(
            "reconciler.controller.loop.dry_run", lambda *args, **more: asked(*args, every=True, **more)
        )
        await follows(scene, "2", name="app")
        assert fault.struck > 0


async def test_an_unanswered_request_that_cannot_be_looked_into_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, unjudged = Faulty(of_app), Faulty()
    monkeypatch.setattr(apply_plan, "perform", fault.before_awaiting(perform))
    monkeypatch.setattr(recover, "_owner", unjudged.before(recover._owner))
    async with running_after(tmp_path, fault) as scene:
        scene.app("2", "m1", "m2")
        await scene.until(lambda: unjudged.struck > 1)
        await follows(scene, "1")
        # What m1 holds already may not be recorded at this moment.
        await scene.until(lambda: {found.cluster for found in scene.journal.open_intents().values()} == {"m2"})
        fault.is_on = unjudged.is_on = False
        await scene.until(lambda: not scene.journal.open_intents() and scene.value("m2") == "2")


async def test_a_kind_whose_description_brings_a_fault_out_has_no_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty()
    monkeypatch.setattr(reading, "schema_of_openapi", fault.before(schema_of_openapi))

    async def described(member: MemberCluster, api_version: str) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(MemberCluster, "openapi", described)
    async with running_after(tmp_path, fault) as scene:
        scene.put(
            custom=[{"apiVersion": "example.org/v1", "kind": "Odd", "metadata": {"name": "odd", "namespace": "demo"}}]
        )
        scene.loop.wake()
        await scene.until(lambda: fault.struck > 0)
        await follows(scene, "2")


async def test_a_store_that_cannot_be_read_for_a_fault_keeps_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty()
    async with running_after(tmp_path, fault) as scene:
        monkeypatch.setattr(scene.source, "read", fault.before_awaiting(scene.source.read))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: "internal-error" in scene.vitals.source_error)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        fault.is_on = False
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3" and not scene.vitals.source_error)


async def test_a_source_that_cannot_say_whether_it_changed_is_read_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty()
    async with running_after(tmp_path, fault) as scene:
        monkeypatch.setattr(scene.source, "changed", fault.before_awaiting(scene.source.changed))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: fault.struck > 1)
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3")


async def test_clusters_that_are_away_are_asked_again_though_one_brings_a_fault_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Faulty(in_m2)
    async with running_after(tmp_path, fault) as scene:
        await scene.box.servers["m2"].stop()
        monkeypatch.setattr(MemberCluster, "identity", fault.before_awaiting(MemberCluster.identity))
        scene.loop.wake()
        await scene.until(lambda: fault.struck > 2)
        await scene.box.servers["m2"].start()
        fault.is_on = False
        await follows(scene, "5", name="app")


def running_after(folder: Path, fault: Faulty) -> Any:
    """A loop that works without the fault until both clusters are as wanted, and with it from then on."""
    return _RunningAfter(folder, fault)


class _RunningAfter:
    def __init__(self, folder: Path, fault: Faulty) -> None:
        self._scene, self._fault = running(folder), fault
        fault.is_on = False

    async def __aenter__(self) -> Running:
        scene = await self._scene.__aenter__()
        self._fault.is_on = True
        return scene

    async def __aexit__(self, *exc: Any) -> None:
        self._fault.is_on = False
        await asyncio.sleep(0)
        await self._scene.__aexit__(*exc)
