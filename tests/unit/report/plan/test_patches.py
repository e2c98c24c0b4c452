"""Every patch that is printed applies to the object as it is, and gives what the change makes of it."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import MISSING, Action, Change, FieldChange, Plan
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.ownership import parse_path, value_at
from reconciler.planner import compare_revisions
from reconciler.report import json_text
from reconciler.report.plan.plan_patches import plan_patches
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy

MAP = Identity("", "ConfigMap", "demo", "app")
WEB = Identity("apps", "Deployment", "demo", "app")
DELETES: dict[str, Any] = {"preserveResourcesOnDeletion": False}


def of_kind(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for part in document["patches"] if part["resource"]["kind"] == kind]


def live_patches(bed: TestBed, fleet: Fleet) -> list[tuple[Change, dict[str, Any]]]:
    plan = bed.plan(fleet).plan
    parts = plan_patches(plan)["patches"]
    by_place = {(part["cluster"], part["resource"]["kind"], part["action"]): part for part in parts}
    return [(c, by_place[c.cluster, c.identity.kind, str(c.action)]) for c in plan.changes]


def with_sidecar(document: dict[str, Any], **env: str) -> dict[str, Any]:
    pod = document["spec"]["template"]["spec"]
    pod["containers"] = [{"name": "side", "image": "side:1"}, *pod["containers"]]
    pod["containers"][0]["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return document


def test_patch_of_an_update_leads_from_the_live_object_to_what_is_wanted() -> None:
    bed = TestBed()
    bed.run(fleet_of(with_sidecar(deployment(), A="1", B="2"), policy("Deployment", "m1")))
    head = fleet_of(with_sidecar(deployment(image="nginx:2", replicas=3), B="3", C="4"), policy("Deployment", "m1"))
    [(change, part)] = live_patches(bed, head)
    before = bed.objects["m1"][WEB].body
    after = jsonpatch.JsonPatch(part["patch"]).apply(dict(before))
    for field in change.fields:
        path = parse_path(field.path)
        assert path is not None
        assert value_at(after, path) == field.after, field.path
    assert {"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "nginx:2"} in part["patch"]
    assert {operation["op"] for operation in part["patch"]} == {"add", "replace", "remove"}


def test_patch_counts_the_items_that_others_put_into_a_list() -> None:
    bed = TestBed()
    bed.run(fleet_of(deployment(), policy("Deployment", "m1")))
    live = bed.objects["m1"][WEB]
    spec = json.loads(json.dumps(live.body["spec"]))
    spec["template"]["spec"]["containers"].insert(0, {"name": "injected", "image": "side:1"})
    bed.edit("m1", WEB, spec=spec)
    [(_, part)] = live_patches(bed, fleet_of(deployment(image="nginx:2"), policy("Deployment", "m1")))
    assert part["patch"] == [{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "nginx:2"}]


def test_patches_of_what_comes_goes_and_is_let_go() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map(a="1"), policy("ConfigMap", "m1", **DELETES)))
    [(_, part)] = [found for found in live_patches(bed, fleet_of(policy("ConfigMap", "m1", **DELETES)))
                   if found[0].identity == MAP]  # fmt: skip
    assert (part["action"], part["patch"]) == ("delete", [{"op": "remove", "path": ""}])
    keeps = fleet_of(policy("ConfigMap", "m1", preserveResourcesOnDeletion=True))
    [(_, part)] = [found for found in live_patches(bed, keeps) if found[0].identity == MAP]
    assert (part["action"], [operation["path"] for operation in part["patch"]]) == (
        "release", ["/metadata/labels/fleet.reconciler~1fleet", "/metadata/annotations/fleet.reconciler~1owner"]
    )  # fmt: skip
    created = plan_patches(TestBed().plan(fleet_of(config_map(a="1"), policy("ConfigMap", "m1"))).plan)
    [part] = of_kind(created, "ConfigMap")
    assert [(op["op"], op["path"], op["value"]["data"]) for op in part["patch"]] == [("add", "", {"a": "1"})]


def test_comparison_of_revisions_has_patches_too() -> None:
    base = fleet_of(config_map(a="1", b="2"), policy("ConfigMap", "m1"))
    head = fleet_of(config_map(a="2", c="3"), policy("ConfigMap", "m1"))
    plan = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    [part] = of_kind(plan_patches(plan), "ConfigMap")
    after = jsonpatch.JsonPatch(part["patch"]).apply({"data": {"a": "1", "b": "2"}})
    assert after == {"data": {"a": "2", "c": "3"}}
    assert json_text(plan_patches(plan)) == json_text(plan_patches(plan))


def test_values_of_secrets_are_hidden() -> None:
    metadata = {"name": "app", "namespace": "demo"}
    secrets = [{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": value, "same": "c2FtZQ=="}}
               for value in ("b2xkLXZhbHVl", "bmV3LXZhbHVl")]  # fmt: skip
    bed = TestBed()
    bed.run(fleet_of(secrets[0], policy("Secret", "m1")))
    for fleet in (fleet_of(secrets[1], policy("Secret", "m1")), fleet_of(secrets[1], policy("Secret", "m1", "m2"))):
        text = json_text(plan_patches(bed.plan(fleet).plan))
        for hidden in ("b2xkLXZhbHVl", "bmV3LXZhbHVl", "c2FtZQ==", "old-value", "new-value"):
            assert hidden not in text
        assert "/data/k" in text


CONFIG = GVK("", "v1", "ConfigMap")


@pytest.mark.parametrize(
    ("before", "path", "after", "expected"),
    [
        ({}, "data.a", "1", [{"op": "add", "path": "/data", "value": {"a": "1"}}]),
        ({"spec": {"ports": []}}, "spec.ports[port=80,protocol=TCP].name", "web",
         [{"op": "add", "path": "/spec/ports/-", "value": {"port": 80, "protocol": "TCP", "name": "web"}}]),
        ({}, "spec.ports[port=80].name", "web",
         [{"op": "add", "path": "/spec", "value": {"ports": [{"port": 80, "name": "web"}]}}]),
        ({"metadata": {"finalizers": ["a", "b"]}}, 'metadata.finalizers["a"]', MISSING,
         [{"op": "remove", "path": "/metadata/finalizers/0"}]),
        ({"metadata": {"finalizers": ["a"]}}, 'metadata.finalizers["b"]', "b",
         [{"op": "add", "path": "/metadata/finalizers/-", "value": "b"}]),
        ({"metadata": {"annotations": {}}}, "metadata.annotations['a/b~c']", "d",
         [{"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "d"}]),
        ({}, "data.a", MISSING, []),
    ],
)  # fmt: skip
def test_paths_of_a_diff_become_pointers(
    before: dict[str, Any], path: str, after: Any, expected: list[dict[str, Any]]
) -> None:
    field = FieldChange(path=path, before=MISSING, after=after)
    change = replace(
        Change(action=Action.UPDATE, cluster="m1", gvk=CONFIG, identity=MAP, cause=field.cause),
        fields=(field,), before=before, manifest={},
    )  # fmt: skip
    [part] = plan_patches(Plan(base="", head="", changes=(change,)))["patches"]
    assert part["patch"] == expected
