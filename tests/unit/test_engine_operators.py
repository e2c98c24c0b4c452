"""Operators leave after what they finalize, in whole rounds. Source: docs/concepts/deletion.md."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import operator_parts
from tests.fakes import worlds
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of

RBAC = "rbac.authorization.k8s.io"
WIDGETS = ("example.com", "Widget")
KINDS = {
    GVK("example.com", "v1", "Widget"): True,
    GVK("", "v1", "ServiceAccount"): True,
    GVK(RBAC, "v1", "ClusterRole"): False,
    GVK(RBAC, "v1", "ClusterRoleBinding"): False,
}
GUARDS: dict[str, Any] = {"maxDeletes": 100, "maxDeletePercent": 100}


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members serve Widgets, and what operators are made of."""
    monkeypatch.setattr(worlds, "SERVED", {**worlds.SERVED, **KINDS})


def named(api_version: str, kind: str, name: str, namespace: str = "", **body: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


DEFINITION = named(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com",
    spec={"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}, "scope": "Namespaced",
          "versions": [{"name": "v1", "served": True, "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}}}]},
)  # fmt: skip
WIDGET = named("example.com/v1", "Widget", "w", "demo")
ACCOUNT = named("v1", "ServiceAccount", "operator", "demo")


def role(resource: str = "widgets", group: str = "example.com", verb: str = "patch") -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": [resource], "verbs": ["get", verb]}
    return named(f"{RBAC}/v1", "ClusterRole", "operator", rules=[rule])


def binding(of: str = "operator") -> dict[str, Any]:
    return named(f"{RBAC}/v1", "ClusterRoleBinding", "operator",
                 roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": of},
                 subjects=[{"kind": "ServiceAccount", "name": "operator", "namespace": "demo"}])  # fmt: skip


def operator() -> dict[str, Any]:
    """A Deployment that runs as the account and mounts the ConfigMap `settings`."""
    body = deployment("operator")
    pod = body["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "operator"
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return body


PARTS = (role(), binding(), ACCOUNT, operator(), config_map("settings"))


def policies(*kinds: tuple[str, str], keep: bool = False) -> list[dict[str, Any]]:
    return [
        named("policy.one.alibabacloud.com/v1alpha1", "ClusterPropagationPolicy", f"all-{kind.lower()}",
              spec={"resourceSelectors": [{"apiVersion": version, "kind": kind}], "placement": {},
                    "preserveResourcesOnDeletion": keep})
        for version, kind in kinds
    ]  # fmt: skip


RULES = policies(
    ("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("v1", "ServiceAccount"), (f"{RBAC}/v1", "ClusterRole"),
    (f"{RBAC}/v1", "ClusterRoleBinding"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
)  # fmt: skip
DELETED = policies(("example.com/v1", "Widget"))
FLEET = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"},
         "spec": {"guards": GUARDS}}  # fmt: skip


def store(*bodies: dict[str, Any], widgets: list[dict[str, Any]] = DELETED) -> Fleet:
    return fleet_of(FLEET, *bodies, *RULES, *widgets, clusters=("m1",))


def bed_with(*bodies: dict[str, Any], widgets: list[dict[str, Any]] = DELETED) -> TestBed:
    bed = TestBed("m1")
    bed.run(store(*bodies, widgets=widgets))
    bed.run(store(*bodies, widgets=widgets))
    return bed


def leaving(bed: TestBed, fleet: Fleet) -> dict[str, tuple[Action, str | None]]:
    found = bed.plan(fleet).plan.changes
    return {
        f"{change.identity.kind} {change.identity.name}": (change.action, change.held)
        for change in found
        if change.identity.kind != "Namespace"
    }


def identity(body: dict[str, Any]) -> Identity:
    group = body["apiVersion"].rpartition("/")[0]
    return Identity(group, body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])


def wait_for(bed: TestBed, body: dict[str, Any], *finalizers: str, deleted: bool = True) -> None:
    live = bed.objects["m1"][identity(body)]
    stamp = {"deletionTimestamp": worlds.NOW} if deleted else {}
    metadata = {**live.body["metadata"], "finalizers": list(finalizers), **stamp}
    bed.objects["m1"][identity(body)] = replace(live, body={**live.body, "metadata": metadata})


NAMES = ("ClusterRole operator", "ClusterRoleBinding operator", "ServiceAccount operator", "Deployment operator",
         "ConfigMap settings")  # fmt: skip


def test_an_operator_is_deleted_after_the_objects_that_it_finalizes() -> None:
    bed = bed_with(WIDGET, *PARTS)
    plan = bed.plan(store()).plan
    waves = [{plan.changes[index].identity.kind for index in wave} for wave in plan.waves]
    assert waves[0] == {"Widget"}
    assert {change.held for change in plan.changes} == {None}
    after = {change.identity.kind: change.after for change in plan.changes}
    assert after["Deployment"] >= {identity(WIDGET)}
    assert after["ConfigMap"] >= {identity(WIDGET)}


def test_every_part_waits_while_a_finalizer_keeps_one_object() -> None:
    bed = bed_with(WIDGET, *PARTS)
    wait_for(bed, WIDGET, "example.com/cleanup")
    plan = bed.plan(store()).plan
    held = "waits until Widget demo/w has left, which example.com/cleanup keeps"
    assert leaving(bed, store()) == dict.fromkeys(NAMES, (Action.DELETE, held))
    assert [problem.code for problem in plan.problems] == ["being-deleted"]
    del bed.objects["m1"][identity(WIDGET)], bed.ledger["m1"][identity(WIDGET)]
    assert leaving(bed, store()) == dict.fromkeys(NAMES, (Action.DELETE, None))


def test_an_operator_waits_for_the_definition_whose_objects_it_finalizes() -> None:
    """Deleting the definition deletes objects of others, too, and their finalizers want their operator."""
    bed = bed_with(DEFINITION, *PARTS)
    found = leaving(bed, store())
    assert found["Deployment operator"] == (
        Action.DELETE,
        "waits until CustomResourceDefinition widgets.example.com has left",
    )
    assert (found["CustomResourceDefinition widgets.example.com"][1] or "").startswith("guard: ")


def test_a_namespace_stays_for_the_operator_in_it() -> None:
    space = named("v1", "Namespace", "demo")
    rules = policies(("v1", "Namespace"), ("example.com/v1", "Widget"))
    bed = bed_with(space, WIDGET, *PARTS, widgets=rules)
    wait_for(bed, WIDGET, "example.com/cleanup")
    confirm = {**GUARDS, "confirm": bed.plan(store(widgets=rules)).plan.held_digest}
    fleet = {**FLEET, "spec": {"guards": confirm}}
    plan = bed.plan(fleet_of(fleet, *RULES, *rules, clusters=("m1",))).plan
    (change,) = [found for found in plan.changes if found.identity.kind == "Namespace"]
    assert (change.action, change.held) == (
        Action.DELETE,
        "waits until Widget demo/w has left, which example.com/cleanup keeps",
    )


def test_a_built_in_object_with_a_finalizer_keeps_its_operator() -> None:
    bed = bed_with(config_map("data"), role("configmaps", ""), *PARTS[1:])
    wait_for(bed, config_map("data"), "example.com/backup")
    assert leaving(bed, store())["Deployment operator"][1] == (
        "waits until ConfigMap demo/data has left, which example.com/backup keeps"
    )
    wait_for(bed, config_map("data"), "kubernetes.io/pvc-protection", "foregroundDeletion")
    assert leaving(bed, store())["Deployment operator"] == (Action.DELETE, None)


def test_an_operator_that_leaves_does_not_wait_for_objects_that_stay_or_are_released() -> None:
    kept = policies(("example.com/v1", "Widget"), keep=True)
    assert leaving(bed_with(WIDGET, *PARTS), store(WIDGET))["Deployment operator"] == (Action.DELETE, None)
    released = leaving(bed_with(WIDGET, *PARTS, widgets=kept), store(widgets=kept))
    assert released == {"Widget w": (Action.RELEASE, None), **dict.fromkeys(NAMES, (Action.DELETE, None))}


def test_an_object_that_leaves_after_its_own_operator_makes_it_wait_for_nothing() -> None:
    """The operator mounts what it finalizes itself: each would wait for the other."""
    bed = bed_with(config_map("settings"), role("configmaps", ""), *PARTS[1:4])
    wait_for(bed, config_map("settings"), "example.com/cleanup", deleted=False)
    assert leaving(bed, store())["Deployment operator"] == (Action.DELETE, None)


@pytest.mark.parametrize(
    ("given", "is_part"),
    [
        (role(), True),
        (role("*", "*", "*"), True),
        (role("widgets/finalizers", verb="update"), True),
        (role("widgets/status"), True),
        (role("gadgets"), False),
        (role(group="example.org"), False),
        (role(verb="watch"), False),
    ],
)
def test_rules_tell_who_may_finalize(given: dict[str, Any], is_part: bool) -> None:
    objects = {identity(body): body for body in (given, binding(), ACCOUNT, operator(), deployment("other"))}
    parts = operator_parts(WIDGETS, objects, BUILT_IN_KINDS)
    assert parts == ({identity(body) for body in (given, binding(), ACCOUNT, operator())} if is_part else set())


def test_who_is_bound_to_cluster_admin_may_finalize() -> None:
    objects = {identity(body): body for body in (binding("cluster-admin"), ACCOUNT, operator())}
    assert operator_parts(WIDGETS, objects, BUILT_IN_KINDS) == objects.keys()


def test_a_definition_says_what_its_objects_are_called_in_rules() -> None:
    names = {"plural": "widgeten", "kind": "Widget"}
    definition = {**DEFINITION, "spec": {**DEFINITION["spec"], "names": names}}
    objects = {identity(body): body for body in (definition, role("widgeten"), binding(), ACCOUNT, operator())}
    assert identity(operator()) in operator_parts(WIDGETS, objects, BUILT_IN_KINDS)


def test_the_definition_leaves_before_its_operator_and_the_namespace_last() -> None:
    space = named("v1", "Namespace", "demo")
    rules = policies(("v1", "Namespace"), ("example.com/v1", "Widget"))
    bed = bed_with(space, DEFINITION, WIDGET, *PARTS, widgets=rules)
    confirm = bed.plan(store(widgets=rules)).plan.held_digest
    fleet = {**FLEET, "spec": {"guards": {**GUARDS, "confirm": confirm}}}
    plan = bed.plan(fleet_of(fleet, *RULES, *rules, clusters=("m1",))).plan
    order = [plan.changes[index].identity.kind for wave in plan.waves for index in wave]
    assert {change.held for change in plan.changes} == {None}
    assert order.index("Widget") < order.index("CustomResourceDefinition") < order.index("Deployment")
    assert order.index("Deployment") < order.index("ConfigMap") < order.index("Namespace")


def test_a_namespace_and_a_definition_stay_until_what_is_held_in_them_has_left() -> None:
    bed = TestBed("m1")
    rules = policies(("v1", "Namespace"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    guards, namespace = {**GUARDS}, named("v1", "Namespace", "demo")
    settings = {**FLEET, "spec": {"guards": guards}}
    deleted = policies(("example.com/v1", "Widget"))
    bed.run(fleet_of(settings, DEFINITION, namespace, WIDGET, *rules, *deleted, clusters=("m1",)))
    deleted[0]["spec"]["suspension"] = {"dispatching": True}
    digest = bed.plan(fleet_of(settings, *rules, *deleted, clusters=("m1",))).plan.held_digest
    guards["confirm"] = digest
    plan = bed.plan(fleet_of(settings, *rules, *deleted, clusters=("m1",))).plan
    assert {change.identity.kind: change.held for change in plan.changes} == {
        "Widget": "dispatching is suspended by ClusterPropagationPolicy all-widget",
        "Namespace": "waits until Widget demo/w has left",
        "CustomResourceDefinition": "waits until Widget demo/w has left",
    }
