"""Rollouts in the mark of a cluster: over crashes, lost and restored journals, and hands that meddle.

Source: design#lost-journal; docs/adr/0018-rollouts.md, "What is recorded".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.ledger import AppliedRow
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Record
from reconciler.controller.round import ownership_lock
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.errors import HeldByCopy, MemberClusterError
from reconciler.journal import Journal
from tests.fakes.clocks import QuickClock
from tests.fakes.members import FLEET
from tests.present import present
from tests.unit.controller.round.test_hold import Scene, one_cluster

OLD = Record(revision="c1", begun_at="2020-11-20T10:00:00Z", completed_at="2020-11-20T10:05:00Z")
NEW = Record(revision="c2", begun_at="2020-11-21T10:00:00Z")
NEWER = Record(revision="c3", begun_at="2020-11-22T10:00:00Z")


def told(scene: Scene) -> dict[str, Any]:
    return {key.removeprefix("rollout."): json.loads(text) for key, text in scene.mark.items() if "rollout." in key}


def entry(record: Record) -> dict[str, str]:
    found = {"revision": record.revision, "begunAt": record.begun_at, "completedAt": record.completed_at}
    return {key: value for key, value in found.items() if value}


def writes(scene: Scene) -> int:
    return sum(
        found.plural == "configmaps" and found.verb in ("create", "patch", "update")
        for found in scene.box["m1"].audit
        if "fleet-reconciler/" in found.user_agent
    )


def journal_of(holder: OwnershipLock) -> Journal:
    return holder._journal


async def test_what_is_recorded_is_in_every_write_of_the_mark(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_rollouts("web", {"m1": OLD, "m2": NEW})
            journal_of(holder).record_rollouts("turn", {"m1": Record(turn="c2", turn_at=NEW.begun_at)})
            assert await scene.hold(holder) is None
            assert told(scene) == {"web": entry(OLD)}
        for _ in range(2):
            with scene.process("a") as holder:
                assert await scene.hold(holder) is None
                assert told(scene) == {"web": entry(OLD)}, "what is left out would be taken away"
                assert journal_of(holder).rollout_records()["web"] == {"m1": OLD, "m2": NEW}


def hooks(scene: Scene) -> list[dict[str, Any]]:
    return [json.loads(text) for key, text in sorted(scene.mark.items()) if key.startswith("hook.")]


def ran(name: str, release: str, *, failed: bool = False) -> AppliedRow:
    """The row of a hook that ran and is to be deleted."""
    annotations = {"fleet.reconciler/hook-delete": "succeeded", "fleet.reconciler/release": release}
    return AppliedRow(
        cluster="m1", gvk=GVK("batch", "v1", "Job"), identity=Identity("batch", "Job", "demo", name), uid=f"{name}-1",
        finished=True, failed=failed, recorded={"metadata": {"annotations": annotations}},
    )  # fmt: skip


async def test_another_journal_is_told_which_hooks_ran_and_ours_is_not(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_applied([ran("migrate", "r1"), ran("smoke", "r1", failed=True)])
            stays = replace(ran("stays", "r1"), recorded={"metadata": {"annotations": {}}})
            journal_of(holder).record_applied([stays])
            assert await scene.hold(holder) is None
            assert [(one["name"], one["release"], one.get("failed", False)) for one in hooks(scene)] == [
                ("migrate", "r1", False), ("smoke", "r1", True)
            ]  # fmt: skip
        with scene.process("b") as holder:
            refused = present(await scene.hold(holder, take_over=True))
            assert "told of hooks" in refused.message, "what was planned without them is planned again"
            rows = journal_of(holder).applied("m1")
            assert {row.identity.name: (row.uid, row.failed) for row in rows.values() if row.finished} == {
                "migrate": ("migrate-1", False), "smoke": ("smoke-1", True)
            }  # fmt: skip
            assert await scene.hold(holder) is None
            assert len(hooks(scene)) == 2
            journal_of(holder).record_applied([replace(ran("migrate", "r2"), finished=False)])
            journal_of(holder).remove_applied("m1", [ran("smoke", "").identity])
            assert await scene.hold(holder) is None
            assert hooks(scene) == [], "the next release and a hook that left the store end the record"
            scene.write_mark("PATCH", {"hook.a": "{}", "hook.b": json.dumps({"apiVersion": "v1", "kind": "Secret"})})
            await holder.read_back([scene.member], FLEET)
            assert not any(row.finished for row in journal_of(holder).applied("m1").values())


async def test_a_beginning_is_one_write_and_a_completion_none(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal = journal_of(holder)
            journal.record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
            before, mark = writes(scene), scene.mark
            assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
            assert told(scene) == {"web": entry(NEW)}
            assert scene.mark | {"rollout.web": ""} == mark | {"rollout.web": ""}, "the same epoch, host and time"
            assert await scene.hold(holder) is None, "between the mark and the journal"
            assert told(scene) == {"web": entry(NEW)}
            journal.record_rollouts("web", {"m1": NEW})
            assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
            done = Record(revision="c2", begun_at=NEW.begun_at, completed_at="2020-11-21T11:00:00Z")
            journal.record_rollouts("web", {"m1": done})
            assert await scene.hold(holder) is None
            assert writes(scene) == before + 1
            assert await holder.enter(scene.member, FLEET, {"api": NEWER}) is None
            assert told(scene) == {"api": entry(NEWER), "web": entry(done)}, "it goes along with the next write"
            assert await holder.lost(scene.member, FLEET) is None


async def test_what_is_recorded_no_more_leaves_the_mark(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal = journal_of(holder)
            journal.record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
            journal.record_rollouts("web", {"m1": None})
            assert await scene.hold(holder) is None
            assert told(scene) == {}
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
            assert journal_of(holder).rollout_records() == {}


async def test_entering_takes_hold_first(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
            assert (scene.mark["epoch"], told(scene)) == ("1", {"web": entry(NEW)})
            journal_of(holder).record_rollouts("web", {"m1": NEW})
            scene.write_mark("DELETE")
            assert await holder.enter(scene.member, FLEET, {"web": NEWER}) is None
            assert told(scene) == {"web": entry(NEWER)}
        scene.copy("a", "b")
        with scene.process("a") as first, scene.process("b") as second:
            assert await scene.hold(first) is None
            assert isinstance(await second.enter(scene.member, FLEET, {"web": NEWER}), HeldByCopy)


async def test_an_entry_that_is_not_written_is_not_begun(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
            scene.box["m1"].permits = lambda verb, group, plural, namespace: verb == "get"
            assert isinstance(await holder.enter(scene.member, FLEET, {"web": NEW}), MemberClusterError)
            scene.box["m1"].permits = lambda verb, group, plural, namespace: True
            assert await scene.hold(holder) is None
            assert told(scene) == {"web": entry(OLD)}


POINTS = ("before entries of rollouts are written", "after entries of rollouts were written", "after a rollout")


@pytest.mark.parametrize("point", POINTS)
async def test_a_crash_at_any_point_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def die(name: str) -> None:
        if name.startswith(point):
            raise KeyboardInterrupt

    async def begin(scene: Scene, holder: OwnershipLock) -> None:
        assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
        journal_of(holder).record_rollouts("web", {"m1": NEW})

    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
            with monkeypatch.context() as patched:
                patched.setattr(ownership_lock, "reach", die)
                patched.setattr("reconciler.journal.locks.reach", die)
                with pytest.raises(KeyboardInterrupt):
                    await begin(scene, holder)
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
            recorded = journal_of(holder).rollout_records()["web"]["m1"]
            assert told(scene) == {"web": entry(recorded)}
            assert recorded == (OLD if point.startswith("before") else NEW)
            await begin(scene, holder)
            assert told(scene) == {"web": entry(NEW)}
            assert journal_of(holder).rollout_records() == {"web": {"m1": NEW}}


async def test_a_lost_journal_reads_the_mark_before_it_writes_it(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
        with scene.process("other") as holder:
            assert await holder.read_back([scene.member], FLEET) == {}
            assert journal_of(holder).rollout_records() == {"web": {"m1": NEW}}
            assert scene.mark["epoch"] == "1"
        with scene.process("third") as holder:
            assert await scene.hold(holder, take_over=True) is None
            assert told(scene) == {"web": entry(NEW)}
            assert journal_of(holder).rollout_records() == {"web": {"m1": NEW}}


async def test_what_a_mark_knew_and_the_journal_did_not_is_planned_again(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        scene.write_mark("PATCH", {"rollout.web": json.dumps(entry(NEWER))})
        with scene.process("a") as holder:
            error = present(await holder.enter(scene.member, FLEET, {"web": NEW}))
            assert "what the journal did not know" in error.message
            assert told(scene) == {"web": entry(NEWER)}
            assert journal_of(holder).rollout_records() == {"web": {"m1": NEWER}}
            assert await holder.enter(scene.member, FLEET, {"web": NEWER}) is None


async def test_a_journal_from_a_backup_goes_no_step_back(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
        scene.copy("a", "backup")
        with scene.process("a") as holder:
            assert await holder.enter(scene.member, FLEET, {"web": NEW}) is None
            journal_of(holder).record_rollouts("web", {"m1": NEW})
        with scene.process("backup") as holder:
            assert isinstance(await scene.hold(holder), HeldByCopy)
            assert journal_of(holder).rollout_records() == {"web": {"m1": OLD}}
            assert await scene.hold(holder, take_over=True) is None
            assert journal_of(holder).rollout_records() == {"web": {"m1": NEW}}


HOSTILE = {
    "rollout.": json.dumps(entry(NEW)),
    "rollout.UPPER_case": json.dumps(entry(NEW)),
    "rollout.broken": "{",
    "rollout.large": json.dumps({**entry(NEW), "more": "x" * 2000}),
    "rollout.long": json.dumps({**entry(NEW), "revision": "c" * 129}),
    "rollout.odd": json.dumps({**entry(NEW), "revision": "a\x1b[2J"}),
    "rollout.early": json.dumps({**entry(NEW), "begunAt": "0001-01-01T00:00:00+23:00"}),
    "other": json.dumps(entry(NEW)),
}


async def test_hostile_entries_are_passed_over_and_left_alone(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
        future = json.dumps({**entry(NEW), "begunAt": "2999-01-01T00:00:00Z"})
        scene.write_mark("PATCH", {**HOSTILE, "rollout.future": future})
        with scene.process("a") as holder:
            assert await scene.hold(holder) is None
            records = journal_of(holder).rollout_records()
            assert list(records) == ["future"]
            assert records["future"]["m1"].begun_at <= QuickClock().now()
            before = writes(scene)
            assert await scene.hold(holder) is None
            assert writes(scene) == before, "what others put there is no reason to write"


async def test_what_a_hand_changed_is_put_back(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            journal_of(holder).record_rollouts("web", {"m1": OLD})
            assert await scene.hold(holder) is None
            scene.write_mark("PATCH", {"rollout.web": json.dumps(entry(NEWER))})
            assert await scene.hold(holder) is None
            assert told(scene) == {"web": entry(OLD)}
            assert journal_of(holder).rollout_records() == {"web": {"m1": OLD}}


async def test_a_mark_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async with one_cluster(tmp_path) as scene:
        with scene.process("a") as holder:
            assert await holder.read_back([scene.member], FLEET) == {}, "no mark tells nothing"
            scene.box["m1"].permits = lambda verb, group, plural, namespace: False
            assert list(await holder.read_back([scene.member], FLEET)) == ["m1"]
