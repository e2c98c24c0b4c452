"""Server-side apply means the same on an embedded cluster and on a real one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.sim_examples import config_map, deployment, path_of
from tests.contract.sim_sides import JSON_PATCH, MERGE, STRATEGIC, Side, managers

pytest_plugins = ("tests.contract.sim_fixtures",)

DEPLOYMENTS = "apis/apps/v1/deployments"
MAPS = "api/v1/configmaps"
OTHER_UID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def cfg(space: str) -> str:
    return path_of(MAPS, space, "cfg")


@pytest.fixture
def web(space: str) -> str:
    return path_of(DEPLOYMENTS, space, "web")


def container(body: Any) -> Any:
    return body["spec"]["template"]["spec"]["containers"][0]


def with_metadata(body: Any, **metadata: Any) -> Any:
    return {**body, "metadata": {**body["metadata"], **metadata}}


def test_creates_what_is_absent_and_owns_what_it_says(side: Side, cfg: str) -> None:
    reply = side.apply(cfg, config_map(a="1"))
    assert reply.status == 201
    assert managers(reply.body) == {("ours", "Apply", ""): {"f:data": {"f:a": {}}}}


def test_changes_nothing_the_second_time(side: Side, web: str) -> None:
    first = side.apply(web, deployment(replicas=0))
    again = side.apply(web, deployment(replicas=0))
    assert again.status == 200
    assert again.body["metadata"]["generation"] == first.body["metadata"]["generation"] == 1
    ours = [entry for entry in again.body["metadata"]["managedFields"] if entry["manager"] == "ours"]
    assert ours == first.body["metadata"]["managedFields"][:1]


def test_resource_version_one_creates_what_is_absent(side: Side, cfg: str) -> None:
    assert side.apply(cfg, with_metadata(config_map(a="1"), resourceVersion="1")).status == 201


@pytest.mark.parametrize("force", [False, True])
def test_resource_version_one_refuses_what_exists(side: Side, cfg: str, force: bool) -> None:
    side.apply(cfg, config_map(a="1"), "theirs")
    reply = side.apply(cfg, with_metadata(config_map(b="2"), resourceVersion="1"), force=force)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in reply.message
    assert side.get(cfg).body["data"] == {"a": "1"}


def test_a_uid_refuses_to_create(side: Side, cfg: str) -> None:
    reply = side.apply(cfg, with_metadata(config_map(a="1"), uid=OTHER_UID), force=True)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert "no existing object was found" in reply.message
    assert side.get(cfg).status == 404


def test_another_uid_refuses_to_update(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1"))
    reply = side.apply(cfg, with_metadata(config_map(a="2"), uid=OTHER_UID), force=True)
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    assert {cause["field"] for cause in reply.body["details"]["causes"]} == {"metadata.uid"}


def test_the_right_uid_updates(side: Side, cfg: str) -> None:
    uid = side.apply(cfg, config_map(a="1")).body["metadata"]["uid"]
    reply = side.apply(cfg, with_metadata(config_map(a="2"), uid=uid), force=True)
    assert (reply.status, reply.body["data"]) == (200, {"a": "2"})


def test_removes_what_it_no_longer_says_and_nobody_else_owns(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1", b="2"))
    side.patch(cfg, {"data": {"c": "3"}})
    reply = side.apply(cfg, config_map(a="1"))
    assert reply.body["data"] == {"a": "1", "c": "3"}


def test_keeps_what_another_applier_says_too(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1", b="2"))
    side.apply(cfg, config_map(b="2"), "theirs")
    reply = side.apply(cfg, config_map(a="1"))
    assert reply.body["data"] == {"a": "1", "b": "2"}
    assert managers(reply.body)["theirs", "Apply", ""] == {"f:data": {"f:b": {}}}


def test_refuses_to_change_what_others_own_and_names_each_field(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1", b="1"))
    side.patch(cfg, {"data": {"c": "1"}})
    reply = side.apply(cfg, config_map(a="2", b="2", c="2", d="2"), "theirs")
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")
    assert reply.message == (
        'Apply failed with 3 conflicts: conflicts with "hand" using v1:\n- .data.c\n'
        'conflicts with "ours":\n- .data.a\n- .data.b'
    )
    assert sorted((cause["reason"], cause["field"]) for cause in reply.body["details"]["causes"]) == [
        ("FieldManagerConflict", ".data.a"),
        ("FieldManagerConflict", ".data.b"),
        ("FieldManagerConflict", ".data.c"),
    ]


def test_takes_fields_from_others_by_force(side: Side, cfg: str) -> None:
    side.send("POST", cfg.rpartition("/")[0], config_map(a="1"), fieldManager="hand")
    reply = side.apply(cfg, config_map(a="2"), force=True)
    assert reply.body["data"] == {"a": "2"}
    assert managers(reply.body) == {
        ("ours", "Apply", ""): {"f:data": {"f:a": {}}},
        ("hand", "Update", ""): {"f:data": {}},
    }


def test_drift_by_hand_moves_ownership_and_force_heals_it(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=0))
    path = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "drifted"}]}}}}
    side.patch(web, path, content_type=STRATEGIC)
    image: dict[str, Any] = {'k:{"name":"main"}': {"f:image": {}}}
    hand = managers(side.get(web).body)["hand", "Update", ""]
    assert hand == {"f:spec": {"f:template": {"f:spec": {"f:containers": image}}}}
    healed = side.apply(web, deployment(replicas=0), force=True)
    assert container(healed.body)["image"] == "nginx:1.25"
    assert ("hand", "Update", "") not in managers(healed.body)


def test_a_removed_field_falls_back_to_its_default(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=3))
    reply = side.apply(web, deployment(replicas=None))
    assert reply.body["spec"]["replicas"] == 1


def test_a_scaled_deployment_keeps_its_replicas_when_ours_are_left_out(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=3))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    assert side.send("PUT", f"{web}/scale", scale, fieldManager="hpa").body["spec"] == {"replicas": 5}
    assert managers(side.get(web).body)["hpa", "Update", "scale"] == {"f:spec": {"f:replicas": {}}}
    refused = side.apply(web, deployment(replicas=3))
    assert 'conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas' in refused.message
    left_out = side.apply(web, deployment(replicas=None))
    assert (left_out.status, left_out.body["spec"]["replicas"]) == (200, 5)


def test_keyed_lists_merge_by_key(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=0, env=[{"name": "A", "value": "1"}], ports=[{"containerPort": 80}]))
    theirs = deployment(replicas=0, env=[{"name": "B", "value": "2"}], ports=[{"containerPort": 80, "protocol": "UDP"}])
    reply = side.apply(web, theirs, "theirs", force=True)
    assert container(reply.body)["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert container(reply.body)["ports"] == [
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 80, "protocol": "UDP"},
    ]
    reply = side.apply(web, deployment(replicas=0))
    assert container(reply.body)["env"] == [{"name": "B", "value": "2"}]
    assert container(reply.body)["ports"] == [{"containerPort": 80, "protocol": "UDP"}]


def test_the_last_item_takes_its_list_with_it(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=0, env=[{"name": "A", "value": "1"}]))
    reply = side.apply(web, deployment(replicas=0))
    assert "env" not in container(reply.body)


def test_an_item_that_another_manager_touched_goes_with_its_owner(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=0, env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]))
    items = {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "x"}]}]}}}}
    side.patch(web, items, content_type=STRATEGIC)
    reply = side.apply(web, deployment(replicas=0, env=[{"name": "A", "value": "1"}]))
    assert container(reply.body)["env"] == [{"name": "A", "value": "1"}]


def test_atomic_lists_are_replaced(side: Side, web: str) -> None:
    side.apply(web, deployment(replicas=0, args=["a", "b"]))
    reply = side.apply(web, deployment(replicas=0, args=["c"]))
    assert container(reply.body)["args"] == ["c"]


def test_refuses_a_list_key_that_comes_twice(side: Side, web: str) -> None:
    reply = side.apply(web, deployment(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]))
    assert reply.status == 500
    assert "duplicate entries for key" in reply.message


def test_finalizers_are_a_set(side: Side, cfg: str) -> None:
    side.apply(cfg, with_metadata(config_map(a="1"), finalizers=["sim.example/a"]))
    reply = side.apply(cfg, with_metadata(config_map(a="1"), finalizers=["sim.example/b"]), "theirs")
    assert sorted(reply.body["metadata"]["finalizers"]) == ["sim.example/a", "sim.example/b"]
    fields = managers(reply.body)["theirs", "Apply", ""]["f:metadata"]
    assert fields == {"f:finalizers": {'v:"sim.example/b"': {}}}
    side.patch(cfg, {"metadata": {"finalizers": None}})


def test_an_empty_apply_gives_up_everything(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1"))
    reply = side.apply(cfg, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}})
    assert (reply.status, reply.body.get("data")) == (200, None)
    assert managers(reply.body) == {}


def test_applies_over_an_object_without_managers(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1"), "theirs")
    side.patch(cfg, {"metadata": {"managedFields": [{}]}})
    assert managers(side.get(cfg).body) == {}
    reply = side.apply(cfg, config_map(b="2"))
    assert reply.body["data"] == {"a": "1", "b": "2"}
    assert managers(reply.body) == {
        ("ours", "Apply", ""): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}}},
    }


def test_a_managers_entry_can_be_taken_out(side: Side, cfg: str) -> None:
    side.apply(cfg, config_map(a="1"))
    side.apply(cfg, config_map(b="2"), "theirs")
    entries = side.get(cfg).body["metadata"]["managedFields"]
    kept = [entry for entry in entries if entry["manager"] != "ours"]
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": kept}]
    reply = side.patch(cfg, patch, "ours", content_type=JSON_PATCH)
    assert managers(reply.body) == {("theirs", "Apply", ""): {"f:data": {"f:b": {}}}}
    assert reply.body["data"] == {"a": "1", "b": "2"}


def test_a_dry_run_answers_but_stores_nothing(side: Side, cfg: str) -> None:
    assert side.apply(cfg, config_map(a="1"), dryRun="All").status == 201
    assert side.get(cfg).status == 404
    before = side.apply(cfg, config_map(a="1")).body
    reply = side.apply(cfg, config_map(a="2"), dryRun="All")
    assert (reply.status, reply.body["data"]) == (200, {"a": "2"})
    assert side.get(cfg).body == before


def test_status_is_not_ours_to_apply(side: Side, web: str) -> None:
    body = {**deployment(replicas=0), "status": {"replicas": 9}}
    reply = side.apply(web, body)
    assert "replicas" not in reply.body["status"]
    assert "f:status" not in managers(reply.body)["ours", "Apply", ""]


def test_string_data_is_folded_and_stays_when_it_is_left_out(side: Side, space: str) -> None:
    path = path_of("api/v1/secrets", space, "s")
    shell = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    first = side.apply(path, {**shell, "stringData": {"a": "x", "b": "y"}})
    assert first.body["data"] == {"a": "eA==", "b": "eQ=="}
    second = side.apply(path, {**shell, "stringData": {"a": "x"}})
    assert second.body["data"] == {"a": "eA==", "b": "eQ=="}


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        pytest.param({"metadata": {"name": "other"}}, 400, "does not match the name on the URL", id="another name"),
        pytest.param({"kind": "Secret"}, 400, "invalid object type", id="another kind"),
        pytest.param({"metadata": {"namespace": "default"}}, 400, "namespace of the provided object", id="namespace"),
        pytest.param({"metadata": {"managedFields": [{"operation": "Apply"}]}}, 400, "must be nil", id="managers"),
        pytest.param({"metadata": {"labels": {"a b": "c"}}}, 422, "metadata.labels", id="label key"),
        pytest.param({"metadata": {"labels": {"a": "b c"}}}, 422, "metadata.labels", id="label value"),
        pytest.param({"data": {"a": 1}}, 500, "a", id="wrong type"),
        pytest.param({"data": {"a/b": "1"}}, 422, "data[a/b]", id="key"),
    ],
)  # fmt: skip
def test_refuses_a_faulty_body(side: Side, cfg: str, change: Any, status: int, words: str) -> None:
    metadata = {"name": "cfg", **change.get("metadata", {})}
    reply = side.apply(cfg, {**config_map(), **change, "metadata": metadata})
    assert reply.status == status
    assert words in reply.message
    assert side.get(cfg).status == 404


def test_refuses_to_create_without_a_name(side: Side, cfg: str) -> None:
    reply = side.apply(cfg, {"apiVersion": "v1", "kind": "ConfigMap"})
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


def test_refuses_without_a_field_manager(side: Side, cfg: str) -> None:
    reply = side.send("PATCH", cfg, config_map(a="1"), content_type="application/apply-patch+yaml")
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")


def test_a_missing_namespace_is_named(side: Side) -> None:
    reply = side.apply(path_of(MAPS, "no-such-space", "cfg"), config_map(a="1"))
    assert (reply.status, reply.message) == (404, 'namespaces "no-such-space" not found')
    assert reply.body["details"]["kind"] == "namespaces"


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_a_stale_resource_version_refuses_a_patch(side: Side, cfg: str, content_type: str) -> None:
    side.apply(cfg, config_map(a="1"))
    patch = {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}}
    reply = side.patch(cfg, patch, content_type=content_type)
    assert (reply.status, reply.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("operation", "is_kept"),
    [
        ({"op": "remove", "path": "/metadata/managedFields/0"}, False),
        ({"op": "replace", "path": "/metadata/managedFields", "value": []}, False),
        ({"op": "replace", "path": "/metadata/managedFields", "value": [{}]}, False),
        ({"op": "remove", "path": "/metadata/managedFields"}, True),
    ],
)
def test_an_empty_list_of_entries_ends_tracking_and_no_list_keeps_it(
    side: Side, cfg: str, operation: dict[str, Any], is_kept: bool
) -> None:
    side.apply(cfg, config_map(a="1"))
    side.patch(cfg, [operation], content_type=JSON_PATCH)
    assert bool(managers(side.get(cfg).body)) is is_kept
    side.patch(cfg, {"data": {"b": "2"}})
    assert bool(managers(side.get(cfg).body)) is is_kept
