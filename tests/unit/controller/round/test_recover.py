"""A request that a crash left open is closed by a look. Source: design#intents; design#promise-4."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.ledger import Intent
from reconciler.api.plan import Action, Cause
from reconciler.api.refs import GVK, Identity
from reconciler.controller.round.recover import recover
from reconciler.journal import Journal
from reconciler.kube import MemberClusters, MemberConfig, UserAgent
from tests.fakes.clocks import TestClock
from tests.fakes.journals import exported
from tests.fakes.members import Open, opened
from tests.fakes.scripted_server import Asked, ScriptedServer, reply
from tests.fakes.worlds import config_map, fleet_of, policy
from tests.unit.controller.round.test_entries import ran
from tests.unit.kube.test_client import CORE, discovery

CONFIG_MAP = GVK("", "v1", "ConfigMap")
APP = Identity("", "ConfigMap", "demo", "app")
STORE = fleet_of(config_map(value="1"), policy("ConfigMap", "m1"), clusters=("m1", "m2"))


def crashed(scene: Open, action: Action) -> None:
    """An intent whose outcome was never recorded."""
    scene.journal.begin([Intent(cluster="m1", gvk=CONFIG_MAP, identity=APP, action=action)])


def outcome(journal: Journal) -> str:
    rows = exported(journal)["intent"]
    assert isinstance(rows, list)
    last = rows[-1]
    assert isinstance(last, dict)
    return str(last["outcome"])


async def test_an_object_that_a_lost_create_made_is_known_by_its_uid(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        scene.journal.remove_applied("m1", [APP])
        crashed(scene, Action.CREATE)
        assert await recover(scene.journal, scene.members, STORE)
        live = scene.live("m1")
        assert live is not None
        assert scene.journal.applied("m1")[APP].uid == live["metadata"]["uid"]
        assert outcome(scene.journal) == "done"
        assert not await recover(scene.journal, scene.members, STORE)


async def test_a_create_that_never_arrived_is_closed_and_recorded_nowhere(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        crashed(scene, Action.CREATE)
        assert await recover(scene.journal, scene.members, STORE)
        assert scene.journal.applied("m1") == {}
        assert outcome(scene.journal) == "superseded"


async def test_a_foreign_object_in_the_place_of_a_create_stays_foreign(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        scene.by_hand("m1", "PATCH", {"metadata": {"annotations": {"fleet.reconciler/owner": None}}})
        scene.journal.remove_applied("m1", [APP])
        crashed(scene, Action.CREATE)
        await recover(scene.journal, scene.members, STORE)
        assert APP not in scene.journal.applied("m1")


@pytest.mark.parametrize("action", [Action.DELETE, Action.RELEASE])
async def test_what_was_removed_is_forgotten(tmp_path: Path, action: Action) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        scene.by_hand("m1", "DELETE")
        crashed(scene, action)
        await recover(scene.journal, scene.members, STORE)
        assert APP not in scene.journal.applied("m1")
        assert outcome(scene.journal) == "done"


async def test_the_record_of_a_hook_outlives_a_deletion_whose_answer_was_lost(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        hook = ran("migrate", "r1")
        scene.journal.record_applied([hook])
        intent = Intent(cluster="m1", gvk=hook.gvk, identity=hook.identity, action=Action.DELETE, uid=hook.uid)
        scene.journal.begin([intent])
        await recover(scene.journal, scene.members, STORE)
        assert scene.journal.applied("m1")[hook.identity].finished
        assert outcome(scene.journal) == "done"


@pytest.mark.parametrize("action", [Action.DELETE, Action.REPLACE])
async def test_what_was_deleted_and_finalizers_keep_is_known_to_be_deleted_by_us(
    tmp_path: Path, action: Action
) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        scene.by_hand("m1", "PATCH", {"metadata": {"finalizers": ["example.com/cleanup"]}})
        scene.by_hand("m1", "DELETE")
        uid = scene.journal.applied("m1")[APP].uid
        scene.journal.begin([Intent(cluster="m1", gvk=CONFIG_MAP, identity=APP, action=action, uid=uid)])
        await recover(scene.journal, scene.members, STORE)
        assert scene.journal.applied("m1")[APP].uid == ""
        scene.by_hand("m1", "PATCH", {"metadata": {"finalizers": None}})
        _, planned = await scene.plan(STORE)
        assert [(change.action, change.cause) for change in planned.plan.changes] == [(Action.CREATE, Cause.DECLARED)]


async def test_a_delete_that_never_arrived_leaves_the_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        crashed(scene, Action.DELETE)
        await recover(scene.journal, scene.members, STORE)
        assert APP in scene.journal.applied("m1")
        assert outcome(scene.journal) == "superseded"


async def test_an_intent_of_a_cluster_that_does_not_answer_stays_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        crashed(scene, Action.CREATE)
        assert not await recover(scene.journal, {"m1": "no answer"}, STORE)
        await scene.box.servers["m1"].stop()
        assert not await recover(scene.journal, scene.members, STORE)
        assert len(scene.journal.open_intents()) == 1


async def test_a_kind_that_is_gone_closes_its_intents_and_a_page_that_is_not_found_does_not(tmp_path: Path) -> None:
    def no_page(asked: Asked) -> bytes:
        return {"/api": CORE, "/apis": discovery()}.get(asked.target) or reply(404, b"404 page not found")

    pod = Identity("", "Pod", "demo", "app")
    widget = Identity("", "Widget", "demo", "app")
    async with ScriptedServer(by_target=no_page) as server:
        configs = {"m1": MemberConfig(name="m1", server=server.url)}
        async with MemberClusters.open(configs, agent=UserAgent("f"), clock=TestClock()) as members:
            with Journal.open(tmp_path / "journal.db") as journal:
                journal.begin(
                    Intent(cluster="m1", gvk=GVK("", "v1", found.kind), identity=found, action=Action.CREATE)
                    for found in (pod, widget)
                )
                assert await recover(journal, members, STORE) == {"m1": {widget}}
                assert [left.identity for left in journal.open_intents().values()] == [pod]
