"""Writes: create, apply, patch and delete with their preconditions, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.errors import AlreadyExists, InvalidObject, KindNotServed, ObjectNotFound, WriteConflict
from tests.contract.conftest import Connect
from tests.contract.kube_objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    MANAGER,
    NAMESPACE,
    OTHER_UID,
    SECRET,
    WIDGET,
    WIDGET_DEFINITION,
    config_map,
    deployment,
    secret,
    widget,
)
from tests.real_clusters import RealCluster


@pytest.fixture
def widgets(cluster: RealCluster) -> None:
    cluster.apply(WIDGET_DEFINITION)
    cluster.kubectl("wait", "crd/widgets.contract.example", "--for=condition=Established", "--timeout=90s")


def body_of(gvk: GVK, name: str) -> dict[str, Any]:
    made = {CONFIG_MAP: config_map(name, a="b"), DEPLOYMENT: deployment(name), WIDGET: widget(name)}
    if gvk == NAMESPACE:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"made": "yes"}}}
    return made[gvk]


@pytest.mark.parametrize("gvk", [CONFIG_MAP, DEPLOYMENT, WIDGET, NAMESPACE], ids=lambda gvk: gvk.kind)
async def test_create_makes_what_is_absent_and_refuses_what_is_there(
    member: Connect, namespace: str, widgets: None, gvk: GVK
) -> None:
    name = f"{namespace}-made"
    where = "" if gvk == NAMESPACE else namespace
    async with member() as it:
        made = await it.create(gvk, where, name, body_of(gvk, name), manager=MANAGER)
        assert (made.identity.kind, made.identity.name) == (gvk.kind, name)
        assert {entry["operation"] for entry in made.body["metadata"]["managedFields"]} == {"Apply"}
        with pytest.raises(AlreadyExists):
            await it.create(gvk, where, name, body_of(gvk, name), manager=MANAGER)
        # Controllers may have written its status since.
        live = await it.get(gvk, where, name)
        assert (live.uid, live.body["metadata"].get("generation")) == (
            made.uid,
            made.body["metadata"].get("generation"),
        )
        await it.delete(gvk, where, name, uid=made.uid)


async def test_create_in_a_namespace_that_is_not_there_names_the_namespace(member: Connect) -> None:
    async with member() as it:
        with pytest.raises(ObjectNotFound, match="nowhere"):
            await it.create(CONFIG_MAP, "nowhere", "x", config_map("x"), manager=MANAGER)


async def test_apply_to_another_uid_changes_nothing(member: Connect, namespace: str) -> None:
    async with member() as it:
        made = await it.create(CONFIG_MAP, namespace, "x", config_map("x", a="1"), manager=MANAGER)
        with pytest.raises(WriteConflict, match=r"metadata\.uid"):
            await it.apply(
                CONFIG_MAP, namespace, "x", config_map("x", a="2"), manager=MANAGER, force=True, uid=OTHER_UID
            )
        assert (await it.get(CONFIG_MAP, namespace, "x")).resource_version == made.resource_version


async def test_apply_to_an_older_version_changes_nothing(member: Connect, namespace: str) -> None:
    async with member() as it:
        made = await it.create(CONFIG_MAP, namespace, "v", config_map("v", a="1"), manager=MANAGER)

        async def apply(value: str, version: str) -> LiveObject:
            body = config_map("v", a=value)
            return await it.apply(CONFIG_MAP, namespace, "v", body, manager=MANAGER, force=True, uid=made.uid,
                                  resource_version=version)  # fmt: skip

        now = await apply("2", made.resource_version)
        with pytest.raises(WriteConflict, match="modified"):
            await apply("3", made.resource_version)
        found = await it.get(CONFIG_MAP, namespace, "v")
        assert (found.body["data"], found.resource_version) == ({"a": "2"}, now.resource_version)


async def test_apply_without_force_names_the_other_manager_and_its_field(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    cluster.apply({**config_map("shared", a="1"), "metadata": {"name": "shared", "namespace": namespace}})
    async with member() as it:
        with pytest.raises(WriteConflict, match=r"\.data\.a.*somebody-else"):
            await it.apply(CONFIG_MAP, namespace, "shared", config_map("shared", a="2"), manager=MANAGER, force=False)
        forced = await it.apply(
            CONFIG_MAP, namespace, "shared", config_map("shared", a="2"), manager=MANAGER, force=True
        )
        assert forced.body["data"] == {"a": "2"}


async def test_a_json_patch_whose_test_fails_changes_nothing(member: Connect, namespace: str) -> None:
    async with member() as it:
        made = await it.create(CONFIG_MAP, namespace, "x", config_map("x", a="1"), manager=MANAGER)
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": OTHER_UID},
            {"op": "remove", "path": "/data/a"},
        ]
        with pytest.raises(WriteConflict):
            await it.json_patch(CONFIG_MAP, namespace, "x", operations, manager=MANAGER)
        operations[0]["value"] = made.uid
        after = await it.json_patch(CONFIG_MAP, namespace, "x", operations, manager=MANAGER)
        assert "data" not in after.body


async def test_delete_takes_only_the_object_that_was_meant(member: Connect, namespace: str) -> None:
    async with member() as it:
        made = await it.create(CONFIG_MAP, namespace, "x", config_map("x", a="1"), manager=MANAGER)
        with pytest.raises(WriteConflict):
            await it.delete(CONFIG_MAP, namespace, "x", uid=OTHER_UID)
        assert (await it.get(CONFIG_MAP, namespace, "x")).uid == made.uid
        gone = await it.delete(CONFIG_MAP, namespace, "x", uid=made.uid)
        assert gone is None
        with pytest.raises(ObjectNotFound):
            await it.delete(CONFIG_MAP, namespace, "x", uid=made.uid)


async def test_delete_answers_with_what_a_finalizer_still_holds(member: Connect, namespace: str) -> None:
    body = config_map("held")
    body["metadata"]["finalizers"] = ["contract.example/hold"]
    async with member() as it:
        made = await it.create(CONFIG_MAP, namespace, "held", body, manager=MANAGER)
        left = await it.delete(CONFIG_MAP, namespace, "held", uid=made.uid)
        assert left is not None
        assert left.body["metadata"]["deletionTimestamp"]
        await it.json_patch(
            CONFIG_MAP, namespace, "held", [{"op": "remove", "path": "/metadata/finalizers"}], manager=MANAGER
        )
        with pytest.raises(ObjectNotFound):
            await it.get(CONFIG_MAP, namespace, "held")


async def test_a_field_that_the_schema_does_not_know_is_the_objects_fault(
    member: Connect, namespace: str, widgets: None
) -> None:
    async with member() as it:
        with pytest.raises(InvalidObject, match="dat"):
            await it.create(CONFIG_MAP, namespace, "x", {**config_map("x"), "dat": {"a": "b"}}, manager=MANAGER)
        with pytest.raises(InvalidObject, match="colour"):
            await it.create(WIDGET, namespace, "x", {**widget("x"), "colour": "red"}, manager=MANAGER)


async def test_an_invalid_object_is_refused_with_its_field(member: Connect, namespace: str, widgets: None) -> None:
    async with member() as it:
        with pytest.raises(InvalidObject, match=r"spec\.size"):
            await it.create(WIDGET, namespace, "x", widget("x", size=-1), manager=MANAGER)
        made = await it.create(DEPLOYMENT, namespace, "d", deployment("d", 0), manager=MANAGER)
        moved = deployment("d", 0)
        moved["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        moved["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
        with pytest.raises(InvalidObject, match=r"spec\.selector.*immutable"):
            await it.apply(DEPLOYMENT, namespace, "d", moved, manager=MANAGER, force=True, uid=made.uid)


@pytest.mark.parametrize(
    "data",
    [
        {"password": "hunter2 is not base64"},
        {"password": 5, "hunter2": "x"},
        {".dockerconfigjson": "aHVudGVyMg==", "type": "kubernetes.io/dockerconfigjson"},
    ],
    ids=["not base64", "not a string", "not a docker configuration"],
)
async def test_a_refused_secret_shows_no_value(member: Connect, namespace: str, data: dict[str, Any]) -> None:
    kind = data.get("type", "Opaque")
    values = {key: value for key, value in data.items() if key != "type"}
    async with member() as it:
        with pytest.raises(InvalidObject) as refused:
            await it.create(SECRET, namespace, "s", {**secret("s"), "type": kind, "data": values}, manager=MANAGER)
    assert "hunter2" not in str(refused.value)
    assert "aHVudGVyMg" not in str(refused.value)


async def test_a_kind_that_is_not_served_is_not_an_object_that_is_not_there(member: Connect, namespace: str) -> None:
    async with member() as it:
        with pytest.raises(KindNotServed):
            await it.get(GVK("nobody.example", "v1", "Thing"), namespace, "x")
        with pytest.raises(ObjectNotFound):
            await it.get(CONFIG_MAP, namespace, "x")


async def test_every_write_names_version_fleet_and_commit(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    mark = cluster.mark()
    async with member() as it:
        await it.create(CONFIG_MAP, namespace, "x", config_map("x"), manager=MANAGER)
    events = cluster.writes(since=mark, user_agent="fleet-reconciler/")
    assert [event["userAgent"].partition(" ")[2] for event in events] == ["(fleet=contract; commit=c0ffee)"]
