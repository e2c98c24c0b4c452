"""An object that this journal released is taken back when its template comes back. On embedded clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Intent, IntentEnd, IntentOutcome
from reconciler.api.plan import Action, Change
from reconciler.api.problem import Problem
from reconciler.api.refs import GVK, Identity
from reconciler.controller.cluster_reads.read_clusters import remembered
from reconciler.journal import Journal
from tests.fakes.members import Open, opened
from tests.fakes.worlds import config_map, fleet_of, policy

TWO = ("m1", "m2")
APP = Identity("", "ConfigMap", "demo", "app")


def store(value: str = "1", **spec: Any) -> Fleet:
    return fleet_of(config_map(value=value), policy("ConfigMap", "m1", **spec), clusters=TWO)


WITHOUT = fleet_of(policy("ConfigMap", "m1"), clusters=TWO)


async def released(scene: Open) -> None:
    for fleet in (store(), WITHOUT):
        for result in await scene.apply(fleet):
            assert not result.error, result


async def due(scene: Open, fleet: Fleet) -> tuple[list[Change], list[Problem]]:
    _, planned = await scene.plan(fleet, remembered(scene.journal))
    changes = [change for change in planned.plan.changes if change.identity == APP]
    return changes, [problem for problem in planned.plan.problems if str(APP) in problem.message]


async def test_it_is_taken_back_and_the_plan_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await released(scene)
        scene.by_hand("m1", "PATCH", {"data": {"value": "edited", "more": "kept"}})
        ((change,), problems) = await due(scene, store())
        assert (change.action, problems) == (Action.ADOPT, [])
        assert change.reason is not None
        assert change.reason.rule == "released"
        assert ("data.value", "edited", "1") in [(field.path, field.before, field.after) for field in change.fields]
        _, planned = await scene.plan(store(), remembered(scene.journal))
        await scene.act(planned)
        live = scene.live("m1")
        assert live is not None
        assert live["data"] == {"value": "1", "more": "kept"}
        assert await due(scene, store()) == ([], [])


async def test_what_leaves_the_store_after_it_was_taken_back_leaves_the_cluster(tmp_path: Path) -> None:
    template = config_map(value="1")
    template["data"]["more"] = "2"
    with_more = fleet_of(template, policy("ConfigMap", "m1"), clusters=TWO)
    async with opened(tmp_path) as scene:
        for fleet in (with_more, WITHOUT, with_more, store()):
            _, planned = await scene.plan(fleet, remembered(scene.journal))
            await scene.act(planned)
        live = scene.live("m1")
        assert live is not None
        assert live["data"] == {"value": "1"}
        assert await due(scene, store()) == ([], [])


async def test_a_rendered_chart_is_taken_back_whatever_it_states_of_itself(tmp_path: Path) -> None:
    chart = config_map(value="1")
    chart["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    with_it = fleet_of(chart, policy("ConfigMap", "m1"), clusters=TWO)
    async with opened(tmp_path) as scene:
        for fleet in (with_it, WITHOUT):
            await scene.apply(fleet)
        ((change,), problems) = await due(scene, with_it)
        assert (change.action, problems) == (Action.ADOPT, [])


def give_an_owner(scene: Open) -> None:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]
    scene.by_hand("m1", "PATCH", {"metadata": {"ownerReferences": owners}})


def give_to_a_tool(scene: Open) -> None:
    scene.by_hand("m1", "PATCH", {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}})


def make_anew(scene: Open) -> None:
    scene.by_hand("m1", "DELETE")
    scene.by_hand("m1", "POST", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}})


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (give_an_owner, "object-not-ours"),
        (give_to_a_tool, "object-of-another-tool"),
        (make_anew, "object-not-ours"),
    ],
)
async def test_what_has_another_owner_now_is_left_to_it(tmp_path: Path, event: Any, code: str) -> None:
    async with opened(tmp_path) as scene:
        await released(scene)
        event(scene)
        changes, (problem,) = await due(scene, store())
        assert (changes, problem.code) == ([], code)


async def test_what_was_taken_back_and_then_let_go_by_hand_stays_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await released(scene)
        _, planned = await scene.plan(store(), remembered(scene.journal))
        await scene.act(planned)
        marks = {"labels": {"fleet.reconciler/fleet": None}, "annotations": {"fleet.reconciler/owner": None}}
        scene.by_hand("m1", "PATCH", {"metadata": marks})
        changes, (problem,) = await due(scene, store())
        assert (changes, problem.code) == ([], "object-let-go")
        assert scene.journal.released() == {"m1": {}} or "m1" not in scene.journal.released()


def test_a_release_is_remembered_however_many_intents_follow(tmp_path: Path) -> None:
    def close(journal: Journal, action: Action, name: str, count: int = 1) -> None:
        intent = Intent(cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=APP._replace(name=name),
                        action=action, uid="u")  # fmt: skip
        ids = journal.begin([intent] * count)
        journal.finish([IntentOutcome(number, IntentEnd.DONE) for number in ids])

    with Journal.open(tmp_path / "journal.db") as journal:
        close(journal, Action.RELEASE, "app")
        for _ in range(3):
            close(journal, Action.UPDATE, "other", 5000)
        assert journal.released() == {"m1": {APP: "u"}}
        with Journal.open(tmp_path / "journal.db", read_only=True) as reader:
            assert reader.released() == {"m1": {APP: "u"}}
        close(journal, Action.ADOPT, "app")
        assert journal.released() == {}
