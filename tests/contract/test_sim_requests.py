"""Reading, writing, deleting, listing and watching mean the same on an embedded cluster and on a real one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.sim_examples import EXAMPLES, GADGETS, config_map, deployment, path_of
from tests.contract.sim_sides import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Reply, Side, managers
from tests.real_clusters import wait_until

pytest_plugins = ("tests.contract.sim_fixtures",)

MAPS = "api/v1/configmaps"
DEPLOYMENTS = "apis/apps/v1/deployments"
OTHER_UID = "00000000-0000-4000-8000-000000000000"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
def maps(space: str) -> str:
    return path_of(MAPS, space)


def refused(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.body["reason"]


def test_post_owns_maps_and_items_as_an_update(side: Side, maps: str) -> None:
    reply = side.send("POST", maps, config_map(a="1"))
    assert reply.status == 201
    assert managers(reply.body) == {("contract", "Update", ""): {"f:data": {".": {}, "f:a": {}}}}
    assert refused(side.send("POST", maps, config_map(a="1"))) == (409, "AlreadyExists")


def test_post_generates_names(side: Side, maps: str) -> None:
    reply = side.send("POST", maps, {**config_map(), "metadata": {"generateName": "gen-"}})
    assert reply.body["metadata"]["name"].startswith("gen-")
    assert len(reply.body["metadata"]["name"]) == len("gen-") + 5
    assert refused(side.send("POST", maps, {**config_map(), "metadata": {}})) == (422, "Invalid")


def test_put_needs_the_object_and_its_version(side: Side, maps: str) -> None:
    cfg = f"{maps}/cfg"
    assert refused(side.send("PUT", cfg, config_map(a="1"))) == (404, "NotFound")
    body = side.send("POST", maps, config_map(a="1")).body
    stale = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
    assert refused(side.send("PUT", cfg, stale)) == (409, "Conflict")
    other = {**body, "metadata": {"name": "cfg", "uid": OTHER_UID}}
    assert refused(side.send("PUT", cfg, other)) == (409, "Conflict")
    fresh = side.send("PUT", cfg, {**body, "data": {"a": "2"}})
    assert (fresh.status, fresh.body["data"]) == (200, {"a": "2"})


def test_a_write_without_a_change_keeps_the_version(side: Side, maps: str) -> None:
    body = side.send("POST", maps, config_map(a="1")).body
    assert side.send("PUT", f"{maps}/cfg", body).body == body
    assert side.patch(f"{maps}/cfg", {"data": {"a": "1"}}).body == body


@pytest.mark.parametrize(
    ("content_type", "patch", "data"),
    [
        (MERGE, {"data": {"b": None, "c": "3"}}, {"a": "1", "c": "3"}),
        (STRATEGIC, {"data": {"b": None, "c": "3"}}, {"a": "1", "c": "3"}),
        (JSON_PATCH, [{"op": "remove", "path": "/data/b"}, {"op": "add", "path": "/data/c", "value": "3"}],
         {"a": "1", "c": "3"}),
        (JSON_PATCH, [{"op": "test", "path": "/data/a", "value": "1"},
                      {"op": "move", "from": "/data/a", "path": "/data/z"}], {"b": "2", "z": "1"}),
    ],
)  # fmt: skip
def test_patches(side: Side, maps: str, content_type: str, patch: Any, data: Any) -> None:
    side.send("POST", maps, config_map(a="1", b="2"))
    reply = side.patch(f"{maps}/cfg", patch, content_type=content_type)
    assert (reply.status, reply.body["data"]) == (200, data)


@pytest.mark.parametrize(
    ("content_type", "patch", "status"),
    [
        (JSON_PATCH, [{"op": "remove", "path": "/data/zz"}], 422),
        (JSON_PATCH, [{"op": "test", "path": "/data/a", "value": "9"}], 422),
        ("application/foo", {}, 415),
        (MERGE, {"metadata": {"uid": OTHER_UID}}, 422),
        (MERGE, {"metadata": {"resourceVersion": "1"}}, 409),
    ],
)
def test_refused_patches(side: Side, maps: str, content_type: str, patch: Any, status: int) -> None:
    side.send("POST", maps, config_map(a="1"))
    assert side.patch(f"{maps}/cfg", patch, content_type=content_type).status == status
    assert side.get(f"{maps}/cfg").body["data"] == {"a": "1"}


def test_strategic_patch_merges_containers_by_name(side: Side, space: str) -> None:
    path = path_of(DEPLOYMENTS, space, "web")
    side.apply(path, deployment(replicas=0, env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))
    env = [{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}]
    patch = {
        "spec": {"template": {"spec": {"containers": [{"name": "main", "env": env}, {"name": "x", "image": "y"}]}}}
    }
    containers = side.patch(path, patch, content_type=STRATEGIC).body["spec"]["template"]["spec"]["containers"]
    by_name = {container["name"]: container for container in containers}
    assert sorted(by_name) == ["main", "x"]
    assert {entry["name"] for entry in by_name["main"]["env"]} == {"B", "C"}


@pytest.mark.parametrize("precondition", [{"uid": OTHER_UID}, {"resourceVersion": "1"}])
def test_delete_holds_to_its_preconditions(side: Side, maps: str, precondition: Any) -> None:
    body = side.send("POST", maps, config_map(a="1")).body
    reply = side.delete(f"{maps}/cfg", {"preconditions": precondition})
    assert refused(reply) == (409, "Conflict")
    assert "in the precondition" in reply.message
    right = {"uid": body["metadata"]["uid"], "resourceVersion": body["metadata"]["resourceVersion"]}
    gone = side.delete(f"{maps}/cfg", {"preconditions": right})
    assert (gone.status, gone.body["status"]) == (200, "Success")
    assert refused(side.delete(f"{maps}/cfg")) == (404, "NotFound")


def test_delete_dry_run_deletes_nothing(side: Side, maps: str) -> None:
    side.send("POST", maps, config_map(a="1"))
    assert side.delete(f"{maps}/cfg", dryRun="All").status == 200
    assert side.delete(f"{maps}/cfg", {"dryRun": ["All"]}).status == 200
    assert side.get(f"{maps}/cfg").status == 200


def test_a_finalizer_holds_an_object_until_it_is_taken_off(side: Side, maps: str) -> None:
    body = config_map(a="1")
    body["metadata"]["finalizers"] = ["sim.example/hold"]
    side.send("POST", maps, body)
    held = side.delete(f"{maps}/cfg")
    assert (held.status, held.body["kind"]) == (200, "ConfigMap")
    assert "deletionTimestamp" in side.get(f"{maps}/cfg").body["metadata"]
    side.patch(f"{maps}/cfg", {"metadata": {"finalizers": None}})
    assert side.get(f"{maps}/cfg").status == 404


@pytest.mark.parametrize(("policy", "survives"), [("Background", False), ("Foreground", False), ("Orphan", True)])
def test_dependents_follow_their_owner(side: Side, maps: str, policy: str, survives: bool) -> None:
    owner = side.send("POST", maps, config_map("owner")).body
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    side.send("POST", maps, child)
    side.delete(f"{maps}/owner", {"propagationPolicy": policy})
    wait_until(lambda: side.get(f"{maps}/owner").status == 404, "the owner to go")
    if survives:
        assert "ownerReferences" not in side.get(f"{maps}/child").body["metadata"]
    else:
        wait_until(lambda: side.get(f"{maps}/child").status == 404, "the child to go")


def test_lists_select_by_labels_and_fields(side: Side, maps: str) -> None:
    for name, tier in (("a", "web"), ("b", "db"), ("c", None)):
        body = config_map(name)
        if tier:
            body["metadata"]["labels"] = {"tier": tier, "shared": "y"}
        side.send("POST", maps, body)

    def names(**query: str) -> list[str]:
        items = side.get(maps, **query).body["items"]
        return [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]

    assert names(labelSelector="tier=web") == ["a"]
    assert names(labelSelector="tier in (web, db),shared") == ["a", "b"]
    assert names(labelSelector="tier notin (web)") == ["b", "c"]
    assert names(labelSelector="tier!=web,tier") == ["b"]
    assert names(labelSelector="!tier") == ["c"]
    assert names(fieldSelector="metadata.name=b") == ["b"]
    assert names(fieldSelector="metadata.name!=b") == ["a", "c"]
    assert refused(side.get(maps, labelSelector="a b c")) == (400, "BadRequest")
    assert refused(side.get(maps, fieldSelector="data.a=1")) == (400, "BadRequest")


def test_lists_come_page_by_page(side: Side, maps: str) -> None:
    for name in ("a", "b", "c", "d"):
        side.send("POST", maps, config_map(name))
    first = side.get(maps, limit="2").body
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    assert not {"kind", "apiVersion"} & set(first["items"][0])
    rest = side.get(maps, limit="500", **{"continue": first["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d", "kube-root-ca.crt"]
    assert "continue" not in rest["metadata"]
    assert refused(side.get(maps, limit="2", **{"continue": "zzz"})) == (400, "BadRequest")


def test_a_collection_is_deleted_by_selection(side: Side, maps: str) -> None:
    for name in ("a", "b"):
        body = config_map(name)
        body["metadata"]["labels"] = {"name": name}
        side.send("POST", maps, body)
    assert side.delete(maps, labelSelector="name=a").status == 200
    assert (side.get(f"{maps}/a").status, side.get(f"{maps}/b").status) == (404, 200)


def test_a_watch_replays_what_came_after_its_version(side: Side, maps: str) -> None:
    version = side.get(maps).body["metadata"]["resourceVersion"]
    side.send("POST", maps, config_map(a="1"))
    side.patch(f"{maps}/cfg", {"data": {"a": "2"}})
    side.delete(f"{maps}/cfg")
    events = side.watch(maps, resourceVersion=version)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_begins_with_what_is_there(side: Side, maps: str) -> None:
    side.send("POST", maps, config_map(a="1"))
    events = side.watch(maps, fieldSelector="metadata.name=cfg")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "cfg")]


def test_an_object_enters_and_leaves_a_watched_selection(side: Side, maps: str) -> None:
    version = side.get(maps).body["metadata"]["resourceVersion"]
    side.send("POST", maps, config_map(a="1"))
    side.patch(f"{maps}/cfg", {"metadata": {"labels": {"seen": "y"}}})
    side.patch(f"{maps}/cfg", {"metadata": {"labels": {"seen": None}}})
    events = side.watch(maps, resourceVersion=version, labelSelector="seen=y")
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


def test_initial_events_end_with_a_marked_bookmark(side: Side, maps: str) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    events = side.watch(maps, **query)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_metadata_only_answers(side: Side, maps: str) -> None:
    side.send("POST", maps, config_map(a="1"))
    listed = side.send("GET", maps, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert {key for item in listed["items"] for key in item} == {"kind", "apiVersion", "metadata"}
    one = side.send("GET", f"{maps}/cfg", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").body
    assert one["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nopes", 404),
        ("/apis/nope.example/v1/things", 404),
        ("/foo", 404),
        ("/api/v1/namespaces/default/configmaps/nope", 404),
        ("/openapi/v3/apis/nope.example/v1", 404),
    ],
)
def test_what_is_not_there_is_404(side: Side, path: str, status: int) -> None:
    assert side.get(path).status == status


def test_a_cluster_wide_create_is_not_allowed(side: Side) -> None:
    assert refused(side.send("POST", "/api/v1/configmaps", config_map())) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("accept", ["application/json", AGGREGATED])
def test_discovery_names_kinds_scopes_and_subresources(side: Side, accept: str) -> None:
    if accept == AGGREGATED:
        groups = side.send("GET", "/apis", accept=accept).body["items"]
        apps = next(group for group in groups if group["metadata"]["name"] == "apps")["versions"][0]
        row = next(row for row in apps["resources"] if row["resource"] == "deployments")
        found = (row["responseKind"]["kind"], row["scope"], row["shortNames"])
        assert found == ("Deployment", "Namespaced", ["deploy"])
        assert sorted(sub["subresource"] for sub in row["subresources"]) == ["scale", "status"]
    else:
        assert "apps" in [group["name"] for group in side.get("/apis").body["groups"]]
        rows = {row["name"]: row for row in side.get("/apis/apps/v1").body["resources"]}
        assert (rows["deployments"]["kind"], rows["deployments"]["namespaced"]) == ("Deployment", True)
        assert rows["deployments/scale"]["kind"] == "Scale"


def test_says_what_we_may_do(side: Side) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "delete", "group": "apps", "resource": "deployments"}},
    }
    reply = side.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (reply.status, reply.body["status"]["allowed"]) == (201, True)


def test_a_namespace_takes_its_content_along(side: Side, space: str, maps: str) -> None:
    side.send("POST", maps, config_map(a="1"))
    reply = side.delete(f"/api/v1/namespaces/{space}")
    assert (reply.status, reply.body["status"]["phase"]) == (200, "Terminating")
    wait_until(lambda: side.get(f"/api/v1/namespaces/{space}").status == 404, f"{space} to go")
    assert side.get(maps).body["items"] == []


def test_a_terminating_namespace_takes_nothing_new(side: Side, space: str, maps: str) -> None:
    body = config_map("held")
    body["metadata"]["finalizers"] = ["sim.example/hold"]
    side.send("POST", maps, body)
    side.delete(f"/api/v1/namespaces/{space}")
    reply = side.send("POST", maps, config_map(a="1"))
    assert refused(reply) == (403, "Forbidden")
    assert reply.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    side.patch(f"{maps}/held", {"metadata": {"finalizers": None}})


def test_system_namespaces_stay(side: Side) -> None:
    assert refused(side.delete("/api/v1/namespaces/kube-system")) == (403, "Forbidden")


def _deployment_with(change: Any) -> Any:
    body = deployment(replicas=0)
    return {**body, "spec": {**body["spec"], **change}}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param(_deployment_with({"selector": {"matchLabels": {"a": "c"}}}), {"spec.template.metadata.labels"},
                     id="labels"),
        pytest.param({**deployment(), "spec": {}},
                     {"spec.selector", "spec.template.metadata.labels", "spec.template.spec.containers"}, id="empty"),
        pytest.param(deployment(image=""), {"spec.template.spec.containers[0].image"}, id="image"),
        pytest.param(deployment(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                     {"spec.template.spec.containers[0].volumeMounts[0].name"}, id="volume"),
        pytest.param(deployment(replicas=-1), {"spec.replicas"}, id="replicas"),
    ],
)  # fmt: skip
def test_refuses_faulty_deployments_by_field(side: Side, space: str, body: Any, fields: set[str]) -> None:
    reply = side.apply(path_of(DEPLOYMENTS, space, "web"), body)
    assert refused(reply) == (422, "Invalid")
    assert {cause["field"] for cause in reply.body["details"]["causes"]} == fields


@pytest.mark.parametrize(
    ("example", "change", "field"),
    [
        ("deployment", {"spec": {"selector": {"matchLabels": {"a": "b"}},
                                 "template": {"metadata": {"labels": {"a": "b"}}}}}, "spec.selector"),
        ("stateful set", {"spec": {"serviceName": "other"}}, "spec"),
        ("job", {"spec": {"completions": 7}}, "spec.completions"),
        ("service", {"spec": {"clusterIP": "10.96.200.200", "clusterIPs": ["10.96.200.200"]}}, "spec.clusterIPs[0]"),
        ("secret", {"type": "kubernetes.io/basic-auth"}, "type"),
        ("role binding", {"roleRef": {"name": "other"}}, "roleRef"),
    ],
)  # fmt: skip
def test_refuses_to_change_what_is_immutable(side: Side, space: str, example: str, change: Any, field: str) -> None:
    kind_path, body = EXAMPLES[example]
    path = path_of(kind_path, space, body["metadata"]["name"])
    assert side.apply(path, body).status == 201
    reply = side.patch(path, change)
    assert refused(reply) == (422, "Invalid")
    assert field in {cause["field"] for cause in reply.body["details"]["causes"]}


def test_an_immutable_secret_stays_as_it_is(side: Side, space: str) -> None:
    path = path_of("api/v1/secrets", space, "s")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "immutable": True, "data": {"a": "eA=="}}
    side.apply(path, body)
    assert refused(side.apply(path, {**body, "data": {"a": "eQ=="}})) == (422, "Invalid")


@pytest.fixture
def gadgets(side: Side, space: str) -> str:
    """The path of gadgets in a namespace, once their definition is established."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.sim.example"
    assert side.apply(path, GADGETS, force=True).status in (200, 201)

    def is_established() -> bool:
        conditions = side.get(path).body.get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    wait_until(is_established, "the definition to be established")
    found = f"/apis/sim.example/v1/namespaces/{space}/gadgets"
    wait_until(lambda: side.get(found).status == 200, "gadgets to be served")
    return found


def gadget(**spec: Any) -> Any:
    return {"apiVersion": "sim.example/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def test_a_defined_kind_is_pruned_defaulted_and_merged_by_its_schema(side: Side, gadgets: str) -> None:
    path = f"{gadgets}/g"
    spec = {"size": 1, "parts": [{"name": "a", "mass": 1}], "tags": ["x"], "free": {"any": {"thing": 1}}}
    first = side.apply(path, gadget(**spec))
    assert first.status == 201
    assert first.body["spec"] == {**spec, "color": "red"}
    assert first.body["metadata"]["generation"] == 1
    second = side.apply(path, gadget(size=1, parts=[{"name": "b"}], tags=["y"]), "theirs")
    assert second.body["spec"]["parts"] == [{"name": "a", "mass": 1}, {"name": "b"}]
    assert second.body["spec"]["tags"] == ["x", "y"]
    assert second.body["metadata"]["generation"] == 2
    third = side.apply(path, gadget(size=1), "ours")
    assert third.body["spec"] == {"size": 1, "color": "red", "parts": [{"name": "b"}], "tags": ["y"]}
    posted = side.send("POST", gadgets, {**gadget(size=1, unknown=2), "metadata": {"name": "h"}})
    assert posted.body["spec"] == {"size": 1, "color": "red"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [({}, "spec.size"), ({"size": -1}, "spec.size"), ({"size": 1, "color": "green"}, "spec.color")],
)
def test_a_defined_kind_is_validated_by_its_schema(side: Side, gadgets: str, spec: Any, field: str) -> None:
    reply = side.apply(f"{gadgets}/g", gadget(**spec))
    assert refused(reply) == (422, "Invalid")
    assert field in {cause["field"] for cause in reply.body["details"]["causes"]}


def test_a_defined_kind_has_status_and_scale(side: Side, gadgets: str) -> None:
    path = f"{gadgets}/g"
    side.apply(path, gadget(size=2))
    assert "status" not in side.patch(path, {"status": {"size": 9}}).body
    status = side.patch(f"{path}/status", {"status": {"size": 2}, "spec": {"size": 5}}).body
    assert (status["status"], status["spec"]["size"], status["metadata"]["generation"]) == ({"size": 2}, 2, 1)
    scale = side.get(f"{path}/scale").body
    assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 2}, 2)
    assert side.patch(f"{path}/scale", {"spec": {"replicas": 4}}).status == 200
    assert side.get(path).body["spec"]["size"] == 4


def test_a_defined_kind_prints_its_columns(side: Side, gadgets: str) -> None:
    side.apply(f"{gadgets}/g", gadget(size=2))
    table = side.send("GET", gadgets, accept=TABLE).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert [row["cells"] for row in table["rows"]] == [["g", 2]]


def test_yaml_bodies_can_be_applied(side: Side, maps: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cfg\ndata:\n  a: 'yes'\n"
    status, raw = side.raw("PATCH", f"{maps}/cfg?fieldManager=ours", text, {"Content-Type": APPLY})
    assert (status, json.loads(raw)["data"]) == (201, {"a": "yes"})
