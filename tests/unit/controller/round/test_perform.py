"""One change as requests, against embedded clusters. Source: design#create; design#update; design#delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action, Change
from reconciler.controller import timing
from reconciler.controller.round.send_change import perform
from reconciler.errors import AlreadyExists, ClusterUnreachable, MemberClusterError, WriteConflict
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.sim import Fault, FaultKind, Request, is_write
from tests.fakes.definitions import DEFINITION, definition
from tests.fakes.members import FLEET, Open, opened
from tests.fakes.worlds import config_map, fleet_of, policy
from tests.present import present

TWO = ("m1", "m2")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def store(value: str = "1", *clusters: str, **spec: Any) -> Fleet:
    return fleet_of(config_map(value=value), policy("ConfigMap", *(clusters or ("m1",)), **spec), clusters=TWO)


def without(*documents: dict[str, object]) -> Fleet:
    return fleet_of(*documents, clusters=TWO)


def pod_store() -> Fleet:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app", "namespace": "demo"},
           "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}  # fmt: skip
    return fleet_of(pod, policy("Pod", "m1"), clusters=TWO)


def is_pod(request: Request) -> bool:
    return is_write(request) and "/pods/" in request.path


async def change_for(scene: Open, fleet: Fleet) -> Change:
    """The one change of the ConfigMap in m1 that the fleet asks for."""
    _, planned = await scene.plan(fleet)
    (found,) = [change for change in planned.plan.changes if change.identity.kind == "ConfigMap"]
    return found


async def ready(scene: Open) -> None:
    """A Namespace, so that a ConfigMap can be created."""
    await scene.apply(store())


async def test_create_is_one_request_that_creates_or_fails(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        assert scene.verbs("m1") == ["patch namespaces 201", "patch configmaps 201"]


async def test_a_create_whose_answer_was_lost_is_not_made_twice(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        present(scene.live("m1"))
        scene.by_hand("m1", "DELETE")
        change = await change_for(scene, store())
        assert change.action is Action.CREATE
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.LOST_RESPONSE), when=is_write)
        with pytest.raises(ClusterUnreachable):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        made = present(scene.live("m1"))
        done = present(await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS))
        assert done.uid == made["metadata"]["uid"]


async def test_a_create_leaves_alone_what_somebody_else_created_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        scene.by_hand("m1", "DELETE")
        change = await change_for(scene, store())
        scene.by_hand("m1", "POST", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}})
        with pytest.raises(AlreadyExists, match="is not ours"):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert "data" not in present(scene.live("m1"))


async def test_a_pod_waits_for_the_account_of_its_new_namespace(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        scene.box.servers["m1"].faults.order(Fault(kind=FaultKind.NO_ACCOUNT), when=is_pod, times=2)
        made = await scene.apply(pod_store())
        assert [(result.change.identity.kind, result.error) for result in made] == [("Namespace", ""), ("Pod", "")]
        assert len(scene.box.servers["m1"].faults.struck) == 2


async def test_a_pod_whose_account_nobody_makes_fails_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "ACCOUNT_WAIT_S", 0.0)
    async with opened(tmp_path) as scene:
        scene.box.servers["m1"].faults.order(Fault(kind=FaultKind.NO_ACCOUNT), when=is_pod, times=1000)
        _, refused = await scene.apply(pod_store())
        assert 'serviceaccount "default" not found' in refused.error


async def test_a_definition_whose_names_another_one_has_fails_with_that_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "OBJECT_WAIT_S", 10**6)
    renamed = definition()
    renamed["metadata"]["name"], renamed["spec"]["names"]["plural"] = "gadgets.example.com", "gadgets"
    async with opened(tmp_path) as scene:
        scene.box["m1"].request(Request(method="POST", path=DEFINITIONS, body=definition(), user_agent="kubectl"))
        selectors = [{"apiVersion": renamed["apiVersion"], "kind": renamed["kind"]}]
        own = {**policy(renamed["kind"], "m1", resourceSelectors=selectors), "kind": "ClusterPropagationPolicy"}
        own["metadata"] = {"name": "app"}
        (refused,) = await scene.apply(fleet_of(renamed, own, clusters=TWO))
        assert refused.error.endswith('gadgets.example.com: its names are not accepted: "Widget" is already in use')
        scene.box["m1"].request(Request(method="DELETE", path=f"{DEFINITIONS}/{DEFINITION}", user_agent="kubectl"))
        scene.box["m1"].run_controllers()
        assert await scene.apply(fleet_of(renamed, own, clusters=TWO)) == ()
        live = present(scene.box["m1"].state.get("CustomResourceDefinition", "", "gadgets.example.com"))
        assert {one["type"]: one["status"] for one in live["status"]["conditions"]}["Established"] == "True"


async def test_an_update_meets_only_the_object_that_was_planned_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        change = await change_for(scene, store("2"))
        scene.by_hand("m1", "DELETE")
        with pytest.raises(MemberClusterError):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert scene.live("m1") is None, "nothing is created by an update"


@pytest.mark.parametrize("mark", ["labels", "annotations"])
async def test_an_update_leaves_alone_what_lost_a_mark_since_the_plan(tmp_path: Path, mark: str) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        change = await change_for(scene, store("2"))
        keys = {"labels": "fleet.reconciler/fleet", "annotations": "fleet.reconciler/owner"}
        scene.by_hand("m1", "PATCH", {"metadata": {mark: {keys[mark]: None}}})
        with pytest.raises(WriteConflict, match="no longer ours"):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert present(scene.live("m1"))["data"] == {"value": "1"}


async def test_an_update_heals_what_was_edited_since_the_plan(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        change = await change_for(scene, store("2"))
        scene.by_hand("m1", "PATCH", {"data": {"value": "theirs"}})
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert present(scene.live("m1"))["data"] == {"value": "2"}


async def test_a_delete_reads_the_marks_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store(preserveResourcesOnDeletion=False))
        change = await change_for(scene, without(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
        assert change.action is Action.DELETE
        scene.by_hand("m1", "PATCH", {"metadata": {"annotations": {"fleet.reconciler/owner": None}}})
        with pytest.raises(WriteConflict, match="no longer ours"):
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert scene.live("m1") is not None


async def test_a_delete_spares_another_object_of_that_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store(preserveResourcesOnDeletion=False))
        change = await change_for(scene, without(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
        with pytest.raises(WriteConflict, match="another object"):
            await perform(scene.members["m1"], replace(change, uid="another"), (FLEET,), BUILT_IN_KINDS)
        assert scene.live("m1") is not None


async def test_deleting_what_is_gone_is_done(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store(preserveResourcesOnDeletion=False))
        change = await change_for(scene, without(policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)))
        scene.by_hand("m1", "DELETE")
        assert await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS) is None


async def test_a_release_takes_our_marks_off_and_nothing_else(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(store(preserveResourcesOnDeletion=True))
        change = await change_for(scene, without(policy("ConfigMap", "m1")))
        assert change.action is Action.RELEASE
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        live = present(scene.live("m1"))
        assert live["data"] == {"value": "1"}
        assert "labels" not in live["metadata"]
        assert "fleet-reconciler" not in str(live["metadata"].get("managedFields"))


async def test_an_adoption_makes_an_object_ours_without_replacing_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        scene.by_hand("m1", "DELETE")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"value": "theirs"}}
        scene.by_hand("m1", "POST", body)
        before = scene.live("m1")
        change = await change_for(scene, store(conflictResolution="Overwrite"))
        assert change.action is Action.ADOPT
        await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        live = present(scene.live("m1"))
        assert before is not None
        assert live["metadata"]["uid"] == before["metadata"]["uid"]
        assert live["data"] == {"value": "1"}


async def test_a_replacement_that_finalizers_keep_away_is_no_fault_of_its_document(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await ready(scene)
        await scene.apply(store())
        scene.by_hand("m1", "PATCH", {"metadata": {"finalizers": ["example.com/never"]}})
        change = replace(await change_for(scene, store("2")), action=Action.REPLACE)
        with pytest.raises(WriteConflict, match=r"it waits for its finalizers example\.com/never$") as failed:
            await perform(scene.members["m1"], change, (FLEET,), BUILT_IN_KINDS)
        assert failed.value.todo.startswith("see who should remove its finalizers in {cluster}")
