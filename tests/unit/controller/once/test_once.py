"""One-shot use of the members: what `apply` tells of changes that it could not even begin."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Change, Plan
from reconciler.api.rollout_progress import Record
from reconciler.controller.cluster_reads.clusters_needed import ClusterFilter
from reconciler.controller.once import plan_once
from reconciler.controller.once.applying import apply_once, rebuild_once
from reconciler.controller.round import apply_plan
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.send_change import perform
from reconciler.errors import ConfigurationError, FleetHeld
from reconciler.journal import Journal
from reconciler.kube import MemberCluster
from reconciler.report import Masker
from reconciler.sim import Fault, FaultKind, is_write
from tests.fakes.clocks import QuickClock
from tests.fakes.members import FLEET, opened
from tests.fakes.raising import InterpreterFault
from tests.fakes.worlds import config_map, deployment, fleet_of, policy
from tests.unit.controller.round.test_entries import ran


async def test_changes_of_a_cluster_that_cannot_be_held_have_failed(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        faults = scene.box.servers["m2"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_write, times=100)
        access = scene.access(tmp_path / "journal.db")
        told: list[ChangeResult] = []
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
        access = scene.access(tmp_path / "journal.db")
        applied = await apply_once(store(names), access, lambda planned: True)
        for number in range(1, 9):
            applied = await apply_once(store(names[number:]), access, lambda planned: True)
        assert [name for name in names if scene.live("m1", name) is not None] == names[3:]
        # The plan alone says the same.
        planned = await plan_once(store([]), access)
        assert planned.plan.held_digest == applied.round.plan.held_digest != ""
        (why,) = {change.held for change in planned.plan.changes if change.identity.kind == "ConfigMap"}
        words = r"guard: 8 deletions and releases in one cluster since \S+Z, 3 of them made already, at most 3 pass"
        assert re.fullmatch(words, why or "")


async def test_a_change_that_fails_by_a_fault_of_ours_fails_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def faulty(member: MemberCluster, change: Change, *more: Any) -> LiveObject | None:
        if (member.name, change.identity.kind) == ("m2", "ConfigMap"):
            raise InterpreterFault("hunter2")
        return await perform(member, change, *more)

    monkeypatch.setattr(apply_plan, "perform", faulty)
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db")
        told: list[ChangeResult] = []
        applied = await apply_once(fleet, access, lambda planned: True, told.append)
        assert scene.live("m1", "app") is not None
        with Journal.open(tmp_path / "journal.db", read_only=True) as journal:
            document: Any = journal.state()
            (intent,) = journal.open_intents().values()
        monkeypatch.setattr(apply_plan, "perform", perform)
        applied_again = await apply_once(fleet, access, lambda planned: True)
        assert scene.live("m2", "app") is not None
    (failed,) = (result for result in applied.results if result.error)
    assert failed.error.startswith("internal-error: ConfigMap demo/app: a fault of the program (InterpreterFault at ")
    assert failed in told
    assert (intent.cluster, intent.identity.name) == ("m2", "app")
    assert [(entry["cluster"], entry["error"][:14]) for entry in document["failed"]] == [("m2", "internal-error")]
    assert [entry["code"] for entry in document["problems"]] == ["internal-error"]
    assert [record.__dict__["event"] for record in caplog.records] == ["InternalError"]
    assert "hunter2" not in caplog.text
    assert not [result for result in applied_again.results if result.error]


@pytest.mark.parametrize("place", ["_NotYetDeleted", "losses_of"])
async def test_a_fault_around_the_changes_of_one_cluster_leaves_those_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    work = getattr(apply_plan, place)

    def faulty(subject: Any, *more: Any) -> Any:
        subjects = subject if isinstance(subject, list) else [subject]
        if any(one.name == "m2" if isinstance(one, MemberCluster) else one.cluster == "m2" for one in subjects):
            raise InterpreterFault
        return work(subject, *more)

    monkeypatch.setattr(apply_plan, place, faulty)
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path) as scene:
        results = await scene.apply(fleet)
        assert scene.live("m1", "app") is not None
    errors = {name: {bool(found.fault) for found in results if found.change.cluster == name} for name in ("m1", "m2")}
    assert errors == {"m1": {False}, "m2": {True}}
    assert len(results) == 4


async def test_a_change_that_cannot_be_masked_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Masker.change

    def faulty(masker: Masker, change: Change) -> Change:
        if (change.cluster, change.identity.kind) == ("m2", "ConfigMap"):
            raise InterpreterFault
        return learn(masker, change)

    monkeypatch.setattr(Masker, "change", faulty)
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path) as scene:
        results = await scene.apply(fleet)
        assert scene.verbs("m2") == ["patch namespaces 201"]
        assert not scene.journal.open_intents()
    assert [(found.change.cluster, found.is_open) for found in results if found.fault] == [("m2", False)]


async def test_who_is_told_may_fail_without_any_change_to_what_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deaf(result: ChangeResult) -> None:
        raise InterpreterFault

    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db")
        applied = await apply_once(fleet, access, lambda planned: True, deaf)
        assert scene.live("m1", "app") is not None
    assert [result.error for result in applied.results] == [""] * 4


async def test_history_has_who_applied_and_which_cluster_was_away(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db", who="li@host")
        await scene.box.servers["m2"].stop()
        for _ in range(2):
            await apply_once(fleet, access, lambda planned: True)
        await scene.box.servers["m2"].start()
        await apply_once(fleet, access, lambda planned: False)
        await apply_once(fleet, access, lambda planned: True)
    with Journal.open(tmp_path / "journal.db", read_only=True) as journal:
        events = journal.events(limit=100)[::-1]
    kinds = ("apply", "cluster-away", "cluster-back")
    found = [
        (one.kind, one.subject, one.data.get("who"), one.data.get("changes")) for one in events if one.kind in kinds
    ]
    assert found == [
        ("apply", "fleet", "li@host", 2),
        ("cluster-away", "cluster m2", None, None),
        ("apply", "fleet", "li@host", 2),
        ("cluster-back", "cluster m2", None, None),
    ], "an apply that changes nothing, or that nobody agreed to, is none"


async def test_without_a_journal_the_marks_tell_where_everything_is(tmp_path: Path) -> None:
    """A laptop and a pull-request check plan what the service would do. Source: design#lost-journal."""
    kinds = [deployment(), config_map("old"), config_map()]
    policies = [policy(kind, "m1", "m2", name=kind.lower(), preserveResourcesOnDeletion=False) for kind in
                ("Deployment", "ConfigMap")]  # fmt: skip
    before = fleet_of(*kinds, *policies, clusters=("m1", "m2"))
    taints = [{"key": "full", "effect": "NoSchedule"}]
    tainted = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
               "spec": {"taints": taints}}  # fmt: skip
    after = fleet_of(deployment(), config_map(color="red"), policies[0], policies[1], tainted, clusters=("m2",))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db")
        await apply_once(before, access, lambda planned: True)
        known = (await plan_once(after, access)).plan
        told = (await plan_once(after, replace(access, journal=tmp_path / "none.db"))).plan

    def changes(plan: Plan) -> list[tuple[str, str, str, str]]:
        return [(each.action, each.cluster, each.identity.name, each.cause) for each in plan.changes]

    assert changes(told) == changes(known)
    assert ("delete", "m1", "old") in [found[:3] for found in changes(told)]
    assert known.placements == told.placements
    assert told.problems == known.problems


@pytest.mark.parametrize("takes_over", [False, True])
async def test_a_lost_journal_learns_from_the_marks_where_rollouts_stand(tmp_path: Path, *, takes_over: bool) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    path = tmp_path / "journal.db"
    record = Record(revision="c2", begun_at="2020-11-21T10:00:00Z")
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(path)
        with Journal.open(path) as journal:
            holder = OwnershipLock(journal, QuickClock())
            for name in ("m1", "m2"):
                assert await holder.enter(scene.members[name], fleet.settings.name, {"web": record}) is None
        path.unlink()
        if takes_over:
            await scene.box.servers["m2"].stop()
        await rebuild_once(fleet, access, take_over=takes_over)
        with Journal.open(path) as journal:
            there = ("m1",) if takes_over else ("m1", "m2")
            assert journal.rollout_records() == {"web": dict.fromkeys(there, record)}
            if takes_over:
                await scene.box.servers["m2"].start()
                holder = OwnershipLock(journal, QuickClock())
                members = scene.members.values()
                assert await holder.hold(members, fleet.settings.name, take_over=True) == {}
                assert journal.rollout_records() == {"web": {"m1": record, "m2": record}}


@pytest.mark.parametrize("takes_over", [False, True])
async def test_history_has_who_built_the_journal_anew(tmp_path: Path, *, takes_over: bool) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1"), clusters=("m1",))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db", who="li@host")
        await apply_once(fleet, access, lambda planned: True)
        await rebuild_once(fleet, access, take_over=takes_over)
    with Journal.open(tmp_path / "journal.db", read_only=True) as journal:
        (found,) = journal.events(limit=1)
    assert found.kind == ("taken-over" if takes_over else "rebuilt")
    assert (found.data["who"], found.data["objects"]) == ("li@host", 2)


async def test_stock_is_taken_of_a_named_cluster_alone(tmp_path: Path) -> None:
    """Source: design#restored-cluster."""
    fleet = fleet_of(config_map(), config_map("old"), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access = scene.access(tmp_path / "journal.db")
        await apply_once(fleet, access, lambda planned: True)
        with Journal.open(tmp_path / "journal.db") as journal:
            before = journal.ledger()
            app, old = (identity for identity in before["m1"] if identity.kind == "ConfigMap")
            assert journal.complete_rounds() == 1
            placed = journal.previous_placements()
            # A backup came back: what had been deleted is there, and what came after it is not.
            journal.remove_applied("m1", [old])
            # Of two hooks that ran and were deleted the cluster knows one.
            journal.record_applied([hook := ran("migrate", "r1")])
            await OwnershipLock(journal, access.clock).hold([scene.members["m1"]], FLEET)
            journal.record_applied([ran("later", "r1")])
        scene.by_hand("m1", "DELETE")
        found = await rebuild_once(fleet, replace(access, clusters=ClusterFilter(("m1",))))
        assert (found.is_stock, found.failed) == (True, {})
        with Journal.open(tmp_path / "journal.db") as journal:
            after = journal.ledger()
            assert after["m1"].keys() == (before["m1"].keys() | {hook.identity}) - {app}
            assert after["m1"][old].uid == before["m1"][old].uid
            assert after["m2"] == before["m2"]
            assert (journal.complete_rounds(), journal.previous_placements()) == (1, placed)


async def test_a_plan_warns_where_apply_refuses_another_journal(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access, older = scene.access(tmp_path / "journal.db"), scene.access(tmp_path / "older.db")
        without = scene.access(tmp_path / "absent.db")
        (tmp_path / "empty.db").touch()
        await apply_once(fleet, access, lambda planned: True)
        shutil.copy(tmp_path / "journal.db", tmp_path / "older.db")
        await apply_once(fleet_of(config_map(), clusters=("m1", "m2")), access, lambda planned: True)
        with pytest.raises(FleetHeld) as refused:
            await apply_once(fleet, older, lambda planned: True)
        observing = replace(fleet, settings=replace(fleet.settings, observe_only=True))
        for store, user, told in (
            (fleet, older, {f"apply would be refused: {refused.value}"}),
            (fleet, access, set()),
            (observing, older, set()),
            (fleet, without, set()),
            (fleet, replace(without, journal=tmp_path / "empty.db"), set()),
        ):
            problems = (await plan_once(store, user)).plan.problems
            assert {found.message for found in problems if found.code == "fleet-held-elsewhere"} == told
        other = replace(fleet, settings=replace(fleet.settings, name="other"))
        with pytest.raises(ConfigurationError, match="it is the journal of fleet test, and the store is fleet other"):
            await plan_once(other, access)


async def test_a_plan_of_one_cluster_names_those_that_placement_goes_without(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    async with opened(tmp_path / "scene") as scene:
        access = replace(scene.access(tmp_path / "journal.db"), clusters=ClusterFilter(("m1",)))
        assert not (await plan_once(fleet, access)).plan.problems
        scene.box.servers["m2"].faults.order(Fault(kind=FaultKind.FORBIDDEN), times=1000)
        plan = (await plan_once(fleet, access)).plan
        assert [(one.cluster, one.code) for one in plan.problems] == [("m2", "cluster-not-read")]
        assert plan.is_complete


async def test_a_cluster_of_another_process_holds_up_no_apply(tmp_path: Path) -> None:
    fleet = fleet_of(config_map(), policy("ConfigMap", "m1", "m2"), clusters=("m1", "m2"))
    fleet = replace(fleet, clusters={**fleet.clusters, "m2": replace(fleet.clusters["m2"], pulls=True)})
    async with opened(tmp_path / "scene") as scene:
        near, far = scene.access(tmp_path / "near.db"), scene.access(tmp_path / "far.db")
        far = replace(far, clusters=ClusterFilter(("m2",)))
        for access, cluster in ((near, "m1"), (far, "m2"), (near, "m1")):
            await apply_once(fleet, access, lambda planned: True)
            assert scene.live(cluster, "app") is not None
        with pytest.raises(FleetHeld, match=r"^m2: "):
            await apply_once(fleet, replace(near, clusters=far.clusters), lambda planned: True)
