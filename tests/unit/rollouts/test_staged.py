"""The revision that each cluster gets while a revision goes over them. Source: ADR 18."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.demand import DependencyRef
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Staging
from reconciler.kinds import BUILT_IN_KINDS, Registry
from reconciler.rollouts import selected_of, staged
from tests.fakes.raising import with_rules
from tests.fakes.worlds import config_map, deployment, policy
from tests.unit.rollouts.staged_bed import StagedBed, begun, done, rollout, store, told

APP = Identity("apps", "Deployment", "demo", "app")
MAP = Identity("", "ConfigMap", "demo", "app")
EVERYWHERE = ("m1", "m2", "m3")


def bed_at(first: Fleet, *clusters: str) -> StagedBed:
    """All clusters have completed the first revision and hold it."""
    bed = StagedBed(*(clusters or EVERYWHERE))
    bed.older[first.revision] = first
    bed.records = {name: done(first.revision) for name in clusters or EVERYWHERE}
    for _ in range(2):
        bed.run_staged(first)
    assert not told(bed.plan_staged(first))
    return bed


def image(bed: StagedBed, cluster: str) -> Any:
    return bed.objects[cluster][APP].body["spec"]["template"]["spec"]["containers"][0]["image"]


def fleet(revision: str, *documents: dict[str, Any], **spec: Any) -> Fleet:
    return store(revision, policy("Deployment"), *documents, rollout(**spec))


def test_only_the_clusters_that_begun_get_the_new_body() -> None:
    bed = bed_at(fleet("r1", deployment()))
    bed.records["m1"] = begun("r2")
    head = fleet("r2", deployment(image="nginx:2"))
    assert told(bed.plan_staged(head)) == ["update m1 Deployment demo/app"]
    bed.run_staged(head)
    assert [image(bed, name) for name in EVERYWHERE] == ["nginx:2", "nginx:1", "nginx:1"]
    bed.records = {name: done("r2") for name in EVERYWHERE}
    bed.run_staged(head)
    assert [image(bed, name) for name in EVERYWHERE] == ["nginx:2"] * 3
    assert not told(bed.plan_staged(head))


def test_drift_is_put_back_to_the_revision_of_its_cluster() -> None:
    bed = bed_at(fleet("r1", deployment()))
    bed.records["m1"] = done("r2")
    head = fleet("r2", deployment(image="nginx:2"))
    bed.run_staged(head)
    for name in ("m1", "m3"):
        live = bed.objects[name][APP]
        body = copy.deepcopy(dict(live.body))
        body["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:drift"
        bed.objects[name][APP] = replace(live, body=body)
    assert told(bed.plan_staged(head)) == ["update m1 Deployment demo/app", "update m3 Deployment demo/app"]
    bed.run_staged(head)
    assert [image(bed, name) for name in EVERYWHERE] == ["nginx:2", "nginx:1", "nginx:1"]


def test_what_is_new_comes_with_the_turn() -> None:
    bed = bed_at(fleet("r1", deployment()))
    bed.records["m1"] = begun("r2")
    head = fleet("r2", deployment(), deployment("new"))
    assert told(bed.plan_staged(head)) == ["create m1 Deployment demo/new"]
    bed.run_staged(head)
    assert not told(bed.plan_staged(head))


def test_the_first_revision_goes_stage_by_stage() -> None:
    bed = StagedBed(*EVERYWHERE)
    bed.records = {"m1": begun("r1")}
    head = fleet("r1", deployment())
    bed.run_staged(head)
    assert {name for name in EVERYWHERE if APP in bed.objects[name]} == {"m1"}


def test_what_left_the_store_stays_until_the_last_stage() -> None:
    bed = bed_at(fleet("r1", deployment(), deployment("old")))
    head = fleet("r2", deployment())
    bed.records["m1"] = done("r2")
    assert not told(bed.plan_staged(head))
    old = Identity("apps", "Deployment", "demo", "old")
    live = bed.objects["m2"][old]
    body = copy.deepcopy(dict(live.body))
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:drift"
    bed.objects["m2"][old] = replace(live, body=body)
    assert told(bed.plan_staged(head)) == ["update m2 Deployment demo/old"], "drift is put back to its revision"
    bed.run_staged(head)
    bed.records = {name: done("r2") for name in EVERYWHERE}
    held = told(bed.plan_staged(head))
    assert [each.split(" (")[0] for each in held] == [f"delete {name} Deployment demo/old" for name in EVERYWHERE] or [
        each.split(" (")[0] for each in held
    ] == [f"release {name} Deployment demo/old" for name in EVERYWHERE]


def test_a_namespace_that_only_followed_in_the_revision_of_a_cluster_follows_what_is_placed_there() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo", "labels": {"team": "a"}}}
    other = {**space, "metadata": {"name": "other"}}
    claim = {
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "spaces"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Namespace"}], "placement": {}},
    }  # fmt: skip
    first = store("r1", policy("Deployment"), deployment(), rollout(), clusters=("m1", "m2"))
    bed = bed_at(first, "m1", "m2")
    bed.objects["m3"], bed.ledger["m3"], bed.records["m3"] = {}, {}, begun("r1")
    head = fleet("r2", deployment(), space, other, claim)
    planned = bed.run_staged(head)
    changes = [(str(one.cause), one.cluster, one.identity.kind) for one in planned.plan.changes]
    assert sorted(changes) == [
        ("ownership", "m1", "Namespace"), ("ownership", "m2", "Namespace"),
        ("placement", "m3", "Deployment"), ("placement", "m3", "Namespace"),
    ]  # fmt: skip
    demo = Identity("", "Namespace", "", "demo")
    assert not any("team" in bed.objects[name][demo].body["metadata"].get("labels", {}) for name in EVERYWHERE)
    bed.records = dict.fromkeys(EVERYWHERE, done("r2"))
    bed.run_staged(head)
    assert [bed.objects[name][demo].body["metadata"]["labels"]["team"] for name in EVERYWHERE] == ["a"] * 3


@pytest.mark.parametrize("scope", [{}, {"policies": ["demo/app"]}, {"labels": {"matchLabels": {"app": "old"}}}])
def test_what_left_the_store_stays_while_the_last_cluster_is_on_its_way(scope: dict[str, Any]) -> None:
    """No cluster is at a revision any more that has it, and the last stage is not done."""
    old = deployment("old")
    old["metadata"]["labels"] = {"app": "old"}
    bed = bed_at(fleet("r1", deployment(), old, templates=scope))
    bed.records = {"m1": done("r2"), "m2": done("r2"), "m3": begun("r2")}
    assert not told(bed.plan_staged(fleet("r2", deployment(), templates=scope)))


def test_what_left_the_store_is_not_taken_back_to_an_older_revision() -> None:
    """The cluster had it from a revision that is in force nowhere any more."""
    bed = bed_at(fleet("r1", deployment(), deployment("old")))
    bed.records["m1"] = begun("r2")
    bed.run_staged(fleet("r2", deployment(), deployment("old", image="nginx:2")))
    bed.records["m1"] = begun("r3")
    assert not told(bed.plan_staged(fleet("r3", deployment())))


def test_deletions_with_their_stage() -> None:
    bed = bed_at(fleet("r1", deployment(), deployment("old"), deletions="withStage"))
    head = fleet("r2", deployment(), deletions="withStage")
    bed.records["m1"] = begun("r2")
    assert told(bed.plan_staged(head)) == ["release m1 Deployment demo/old"], "it left the store, and moved nowhere"


def with_config(name: str) -> dict[str, Any]:
    """A Deployment that takes its environment from a ConfigMap."""
    body = deployment()
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": name}}]
    return body


def brought(revision: str, *documents: dict[str, Any]) -> Fleet:
    return store(revision, policy("Deployment", propagateDeps=True), *documents, rollout())


def test_a_dependency_moves_with_its_owner() -> None:
    bed = bed_at(brought("r1", with_config("app"), config_map("app", a="1"), config_map("next", a="1")))
    head = brought("r2", with_config("next"), config_map("app", a="1"), config_map("next", a="1"))
    bed.records["m1"] = begun("r2")
    bed.run_staged(head)
    bed.run_staged(head)
    following = Identity("", "ConfigMap", "demo", "next")
    assert {name for name in EVERYWHERE if following in bed.objects[name]} == {"m1"}
    assert {name for name in EVERYWHERE if MAP in bed.objects[name]} >= {"m2", "m3"}
    bed.records = {name: done("r2") for name in EVERYWHERE}
    bed.run_staged(head)
    bed.run_staged(head)
    assert all(following in bed.objects[name] for name in EVERYWHERE)


def test_a_dependency_that_left_the_store_stays_where_its_owner_is_behind() -> None:
    bed = bed_at(brought("r1", with_config("app"), config_map("app", a="1")))
    head = brought("r2", deployment())
    bed.records["m1"] = done("r2")
    bed.run_staged(head)
    bed.run_staged(head)
    assert {"m2", "m3"} <= {name for name in EVERYWHERE if MAP in bed.objects[name]}


def test_a_changed_dependency_waits_with_its_owner() -> None:
    bed = bed_at(brought("r1", with_config("app"), config_map("app", a="1")))
    head = brought("r2", with_config("app"), config_map("app", a="2"))
    bed.records["m1"] = begun("r2")
    assert told(bed.plan_staged(head)) == ["update m1 ConfigMap demo/app"]


def with_secret_of(store_name: str) -> tuple[dict[str, Any], ...]:
    """A Deployment that needs a Secret, the ExternalSecret that makes it, and the SecretStore of that."""
    body = deployment()
    body["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "db"}}]
    api = "external-secrets.io/v1"
    wish = {"apiVersion": api, "kind": "ExternalSecret", "metadata": {"name": "db", "namespace": "demo"},
            "spec": {"secretStoreRef": {"name": store_name}}}  # fmt: skip
    vault = {"apiVersion": api, "kind": "SecretStore", "metadata": {"name": store_name, "namespace": "demo"},
             "spec": {"provider": {}}}  # fmt: skip
    return body, wish, vault


def test_what_a_maker_needs_moves_with_the_revision_of_the_maker() -> None:
    bed, first = StagedBed(*EVERYWHERE), brought("r1", *with_secret_of("old"))
    bed.older["r1"], bed.records = first, {name: done("r1") for name in EVERYWHERE}
    for _ in range(2):
        bed.run_staged(first)
    old, new = (Identity("external-secrets.io", "SecretStore", "demo", name) for name in ("old", "new"))
    head = brought("r2", *with_secret_of("new"))
    bed.records["m1"] = begun("r2")
    for _ in range(2):
        bed.run_staged(head)
    assert {name for name in EVERYWHERE if new in bed.objects[name]} == {"m1"}
    assert {name for name in EVERYWHERE if old in bed.objects[name]} >= {"m2", "m3"}
    bed.records = {name: done("r2") for name in EVERYWHERE}
    for _ in range(2):
        bed.run_staged(head)
    assert all(new in bed.objects[name] for name in EVERYWHERE)


def override(image_: str) -> dict[str, Any]:
    operation = {"path": "/spec/template/spec/containers/0/image", "operator": "replace", "value": image_}
    return {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [{"overriders": {"plaintext": [operation]}}],
        },
    }


def test_what_overrides_make_is_staged() -> None:
    bed = bed_at(fleet("r1", deployment(), override("nginx:o1")))
    bed.records["m1"] = begun("r2")
    head = fleet("r2", deployment(), override("nginx:o2"))
    bed.run_staged(head)
    assert [image(bed, name) for name in EVERYWHERE] == ["nginx:o2", "nginx:o1", "nginx:o1"]


def divided(revision: str, weights: dict[str, int], image_: str, **spec: Any) -> Fleet:
    static = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": static},
    }
    placed = policy("Deployment", *weights)
    placed["spec"]["placement"]["replicaScheduling"] = scheduling
    return store(revision, placed, deployment(replicas=6, image=image_), rollout(**spec))


def replicas(bed: StagedBed) -> dict[str, Any]:
    return {name: bed.objects[name][APP].body["spec"]["replicas"] for name in EVERYWHERE if APP in bed.objects[name]}


def test_placement_is_that_of_head_and_bodies_are_those_of_the_cluster() -> None:
    bed = bed_at(divided("r1", {"m1": 1, "m2": 2}, "nginx:1"))
    assert replicas(bed) == {"m1": 2, "m2": 4}
    bed.records["m1"] = done("r2")
    head = divided("r2", {"m1": 2, "m2": 1}, "nginx:2")
    for _ in range(4):
        bed.run_staged(head)
        for name in ("m1", "m2"):
            bed.healthy(name, APP)
    assert replicas(bed) == {"m1": 4, "m2": 2}
    assert [image(bed, name) for name in ("m1", "m2")] == ["nginx:2", "nginx:1"]


def test_placement_can_wait_for_the_last_stage() -> None:
    bed = bed_at(divided("r1", {"m1": 1, "m2": 2}, "nginx:1", placement="last"))
    bed.records["m1"] = begun("r2")
    head = divided("r2", {"m1": 2, "m2": 1}, "nginx:2", placement="last")
    bed.run_staged(head)
    assert replicas(bed) == {"m1": 2, "m2": 4}
    assert [image(bed, name) for name in ("m1", "m2")] == ["nginx:2", "nginx:1"]
    bed.records = {name: done("r2") for name in EVERYWHERE}
    for _ in range(4):
        bed.run_staged(head)
        for name in ("m1", "m2"):
            bed.healthy(name, APP)
    assert replicas(bed) == {"m1": 4, "m2": 2}


def test_a_revision_that_is_gone_changes_nothing() -> None:
    bed = bed_at(fleet("r1", deployment()))
    del bed.older["r1"]
    bed.records["m1"] = done("r2")
    head = fleet("r2", deployment(image="nginx:2"))
    live = bed.objects["m3"].pop(APP)
    assert told(bed.plan_staged(head)) == ["update m1 Deployment demo/app"]
    bed.objects["m3"][APP] = live


def test_what_two_rollouts_speak_for_stays() -> None:
    bed = bed_at(fleet("r1", deployment()))
    other = rollout()
    other["metadata"] = {"name": "other"}
    head = store("r2", policy("Deployment"), deployment(image="nginx:2"), rollout(), other)
    assert not told(bed.plan_staged(head))
    assert image(bed, "m1") == "nginx:1"


def test_what_no_rollout_speaks_for_changes_everywhere_at_once() -> None:
    scope = {"templates": {"namespaces": ["elsewhere"]}}
    bed = bed_at(fleet("r1", deployment(), **scope))
    assert len(told(bed.plan_staged(fleet("r2", deployment(image="nginx:2"), **scope)))) == 3


def test_a_commit_that_stages_nothing_is_no_new_release() -> None:
    bed = bed_at(fleet("r1", deployment()))
    unclaimed = fleet("r2", deployment(), config_map("nobody", a="1"))
    _, standing, progress = bed.standing(unclaimed)
    assert standing.newest == {"default": "r1"}
    assert progress["default"].is_done
    _, standing, _ = bed.standing(fleet("r2", deployment(image="nginx:2")))
    assert standing.newest == {"default": "r2"}
    _, standing, _ = bed.standing(fleet("r2", deployment(), override("nginx:o1")))
    assert standing.newest == {"default": "r2"}


def job(parallelism: int | None, completions: int | None = None) -> dict[str, Any]:
    given = {"parallelism": parallelism, "completions": completions}
    pods = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}], "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "demo"},
            "spec": {key: value for key, value in given.items() if value is not None} | {"template": pods}}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "is_release"),
    [
        (deployment(replicas=2), deployment(replicas=5), False),
        (deployment(replicas=2), deployment(replicas=0), False),
        (deployment(replicas=2), deployment(replicas=5, image="nginx:2"), True),
        (job(2, 8), job(4, 8), False),
        (job(2, 8), job(2, 9), True),
        (job(None), job(3), True),  # One run becomes a work queue.
    ],
)
def test_replicas_alone_are_no_new_release(before: dict[str, Any], after: dict[str, Any], *, is_release: bool) -> None:
    """They move at once, like all that placement divides, so that nothing is left to be staged."""
    placed = policy("Deployment"), policy("Job", name="job")
    bed = bed_at(store("r1", *placed, before, rollout()))
    bed.records["m1"] = done("r1")
    _, standing, progress = bed.standing(store("r2", *placed, after, rollout()))
    assert standing.newest == {"default": "r2" if is_release else "r1"}
    assert progress["default"].is_done is not is_release


def test_replicas_that_no_placement_assigns_are_a_release() -> None:
    """An installed interpreter may let a Deployment follow: its replicas are those of its body."""
    maps = BUILT_IN_KINDS.of("", "ConfigMap")
    needs = with_rules(maps, dependencies=lambda body: (DependencyRef(identity=APP, path="spec"),))
    placed = policy("ConfigMap", propagateDeps=True)
    first = store("r1", placed, config_map("app", a="1"), deployment(replicas=2), rollout())
    head = store("r2", placed, config_map("app", a="1"), deployment(replicas=5), rollout())
    bed = StagedBed(*EVERYWHERE)
    bed.interpreters = Registry({**BUILT_IN_KINDS.by_kind, ("", "ConfigMap"): needs})
    bed.older["r1"], bed.records = first, {name: done("r1") for name in EVERYWHERE}
    assert {target.replicas for target in bed.decided(head).bindings[APP].targets} == {None}
    assert bed.standing(head)[1].newest == {"default": "r2"}


def test_a_copy_that_was_lost_is_made_from_the_revision_of_its_cluster() -> None:
    bed = bed_at(fleet("r1", deployment()))
    bed.records["m1"] = done("r2")
    head = fleet("r2", deployment(image="nginx:2"))
    bed.run_staged(head)
    del bed.objects["m3"][APP]
    assert told(bed.plan_staged(head)) == ["create m3 Deployment demo/app"]
    bed.run_staged(head)
    assert [image(bed, name) for name in EVERYWHERE] == ["nginx:2", "nginx:1", "nginx:1"]


def test_what_a_tick_takes_away_goes_at_once() -> None:
    bed = bed_at(divided("r1", {"m1": 1, "m2": 2}, "nginx:1", placement="last"))
    bed.records["m1"] = begun("r2")
    head = divided("r2", {"m1": 1, "m2": 2}, "nginx:2", placement="last")
    excluded = Constraint(
        identity=APP, cluster="m2", replicas_max=0, reason="it lost its nodes", excludes=True, tick=Tick.FAILOVER
    )
    bed.observations = replace(bed.observations, constraints=(excluded,))
    for _ in range(4):
        bed.run_staged(head)
        for name in ("m1", "m2"):
            if APP in bed.objects[name]:
                bed.healthy(name, APP)
    assert replicas(bed) == {"m1": 6}
    assert image(bed, "m1") == "nginx:2"


def definition(field: str, **spec: Any) -> dict[str, Any]:
    """A CustomResourceDefinition whose objects have one field."""
    fields = {"type": "object", "properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": fields}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    given = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version], **spec}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.x.io"}, "spec": given}  # fmt: skip


def widget(field: str, name: str = "w", namespace: str = "demo") -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": name, "namespace": namespace},
            "spec": {field: "x"}}  # fmt: skip


WIDGETS = Identity("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.x.io")
WIDGET = Identity("x.io", "Widget", "demo", "w")


def everything() -> tuple[dict[str, Any], ...]:
    """Policies that place whatever the tests of definitions have."""
    cluster = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
               "metadata": {"name": "all"},
               "spec": {"resourceSelectors": [
                            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
                            {"apiVersion": "x.io/v1", "kind": "Widget"},
                            {"apiVersion": "v1", "kind": "Service"},
                            {"apiVersion": "apps/v1", "kind": "Deployment"},
                        ], "placement": {}}}  # fmt: skip
    return (cluster,)


def named(name: str, namespace: str) -> dict[str, Any]:
    """A Rollout of the templates of one namespace."""
    found = rollout(templates={"namespaces": [namespace]})
    found["metadata"] = {"name": name}
    return found


def test_a_definition_goes_with_the_revision_of_its_objects() -> None:
    """The Rollout does not select it: it is in no namespace."""
    first = store("r1", *everything(), definition("old"), widget("old"), named("default", "demo"))
    head = store("r2", *everything(), definition("new"), widget("new"), named("default", "demo"))
    bed = StagedBed(*EVERYWHERE)
    bed.older["r1"], bed.records = first, {"m1": begun("r2"), "m2": done("r1"), "m3": done("r1")}
    schedule, standing, progress = bed.standing(head)
    assert standing.newest == {"default": "r2"}
    assert standing.rollouts[WIDGETS] == standing.rollouts[WIDGET] == ("default",)
    staging = staged(schedule, standing, progress, {}, {}, {}).staging
    assert staging is not None
    assert [staging.of(WIDGETS, name) for name in EVERYWHERE] == [None, first, first]


def test_a_definition_alone_is_a_release_of_its_objects() -> None:
    first = store("r1", *everything(), definition("old"), widget("old"), named("default", "demo"))
    bed = StagedBed(*EVERYWHERE)
    bed.older["r1"], bed.records = first, {name: done("r1") for name in EVERYWHERE}
    head = store("r2", *everything(), definition("new"), widget("old"), named("default", "demo"))
    assert bed.standing(head)[1].newest == {"default": "r2"}


def test_a_definition_of_two_rollouts_goes_with_the_one_that_is_behind() -> None:
    documents = (widget("old"), widget("old", namespace="shop"), named("default", "demo"), named("shop", "shop"))
    fleet = store("r2", *everything(), definition("new"), *documents)
    selection = selected_of(StagedBed(*EVERYWHERE).decided(fleet))
    assert selection.rollouts[WIDGETS] == ("default", "shop")
    (problem,) = selection.problems
    assert problem.code == "rollout-definition-shared"
    assert "with the Rollout default and with the Rollout shop" in problem.message
    staging = Staging(
        rollouts=selection.rollouts,
        in_force={"default": {"m1": "r2", "m2": "r1", "m3": "r2"}, "shop": {"m1": "r1", "m2": "r2", "m3": "r2"}},
        newest={"default": "r2", "shop": "r2"},
        fleets={"r1": fleet},
        order=("r1", "r2"),
    )
    assert [staging.of(WIDGETS, name) for name in EVERYWHERE] == [fleet, fleet, None]


def test_what_changes_at_once_does_not_take_a_definition_along() -> None:
    """Live fields of the objects that wait are worth more than a field that comes later."""
    documents = (widget("old"), widget("old", namespace="shop"), named("default", "demo"))
    selection = selected_of(StagedBed(*EVERYWHERE).decided(store("r2", *everything(), definition("new"), *documents)))
    assert selection.rollouts[WIDGETS] == ("default",)
    assert [problem.code for problem in selection.problems] == ["rollout-definition-shared"]


def test_what_serves_the_conversion_goes_with_the_definition() -> None:
    config = {"service": {"namespace": "ops", "name": "hook", "path": "/convert"}}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "ops"},
               "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443}]}}  # fmt: skip
    hook, other = deployment("hook"), deployment("other")
    hook["metadata"]["namespace"] = other["metadata"]["namespace"] = "ops"
    documents = (definition("new", conversion=conversion), widget("new"), service, hook, other)
    found = selected_of(
        StagedBed(*EVERYWHERE).decided(store("r2", *everything(), *documents, named("default", "demo")))
    )
    assert not found.problems
    assert {identity.name for identity in found.rollouts} == {"widgets.x.io", "w", "hook"}
    assert {identity.kind for identity in found.rollouts if identity.name == "hook"} == {"Service", "Deployment"}


def test_a_definition_that_left_the_store_stays_while_its_objects_do() -> None:
    first = store("r1", *everything(), definition("old"), widget("old"), named("default", "demo"))
    head = store("r2", *everything(), named("default", "demo"))
    bed = StagedBed(*EVERYWHERE)
    bed.older["r1"], bed.records = first, {name: done("r1") for name in EVERYWHERE}
    for _ in range(3):
        bed.run_staged(first)
    assert all({WIDGETS, WIDGET} <= bed.objects[name].keys() for name in EVERYWHERE)
    bed.records = {name: done("r2") for name in ("m1", "m2")} | {"m3": begun("r2")}
    assert not [text for text in told(bed.plan_staged(head)) if "Definition" in text]
    bed.records = {name: done("r2") for name in EVERYWHERE}
    assert [text.split()[:2] for text in told(bed.plan_staged(head)) if "Definition" in text] == [
        ["delete", name] for name in EVERYWHERE
    ]
