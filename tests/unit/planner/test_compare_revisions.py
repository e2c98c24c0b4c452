"""Two revisions compared without a cluster: what the second would change in members that the first has made."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint
from reconciler.api.clusters import ClusterObservation, Health, Observations, Workload
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Plan
from reconciler.api.problem import Severity
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from tests.fakes.definitions import definition, widget
from tests.fakes.worlds import FLEET, NOW, TestBed, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
KARMADA = "policy.karmada.io"


def compared(base: Fleet, head: Fleet, seen: Observations | None = None) -> Plan:
    return compare_revisions(base, head, seen or Observations(), NOW, interpreters=BUILT_IN_KINDS)


def told(plan: Plan) -> list[tuple[str, str, str, str | None]]:
    """Action, cluster, cause and hold of all but Namespaces."""
    return [(str(c.action), c.cluster, str(c.cause), c.held) for c in plan.changes if c.identity.kind != "Namespace"]


def fields(plan: Plan) -> list[tuple[str, str]]:
    """Path and cause of every field but our mark."""
    found = (field for change in plan.changes for field in change.fields if "owner" not in field.path)
    return [(field.path, str(field.cause)) for field in found]


def weighted(**weights: int) -> dict[str, Any]:
    entries = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    made = policy("Deployment")
    made["spec"]["placement"] = {
        "clusterAffinity": {"clusterNames": list(weights)},
        "replicaScheduling": {**scheduling, "weightPreference": {"staticWeightList": entries}},
    }
    return made


def image_override(image: str) -> dict[str, Any]:
    path = "/spec/template/spec/containers/0/image"
    plaintext = [{"path": path, "operator": "replace", "value": image}]
    return {
        "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                 "overrideRules": [{"overriders": {"plaintext": plaintext}}]},
    }  # fmt: skip


def test_one_revision_differs_in_nothing_from_itself() -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1", "m2"))
    assert compared(fleet, fleet).changes == ()


def test_templates_come_and_go() -> None:
    rule = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    empty, full = fleet_of(rule), fleet_of(rule, config_map())
    assert told(compared(empty, full)) == [("create", "m1", "declared", None)]
    assert told(compared(full, empty)) == [("delete", "m1", "removed", None)]
    assert told(compared(full, fleet_of(config_map()))) == [("delete", "m1", "policy", None)]


def test_a_copy_goes_when_the_new_one_is_healthy() -> None:
    base = fleet_of(deployment(), policy("Deployment", "m1", "m2"))
    head = fleet_of(deployment(), policy("Deployment", "m2", "m3"))
    assert told(compared(base, head)) == [
        ("delete", "m1", "placement", "waits for m3 healthy"),
        ("create", "m3", "placement", None),
    ]


def test_replicas_go_when_they_are_healthy_elsewhere() -> None:
    base, head = fleet_of(deployment(replicas=6), weighted(m1=1, m2=1)), fleet_of(
        deployment(replicas=6), weighted(m1=1, m2=2)
    )  # fmt: skip
    plan = compared(base, head)
    assert told(plan) == [
        ("update", "m1", "placement", "waits for m2 healthy"),
        ("update", "m2", "placement", None),
    ]
    assert fields(plan) == [("spec.replicas", "placement"), ("spec.replicas", "placement")]


def test_what_was_observed_decides_what_is_waited_for() -> None:
    base = fleet_of(deployment(), policy("Deployment", "m1", "m2"))
    head = fleet_of(deployment(), policy("Deployment", "m2"))

    def seen(health: Health) -> Observations:
        workload = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, replicas=2, health=health)
        clusters = {name: ClusterObservation(name=name, workloads={WEB: workload}) for name in ("m1", "m2", "m3")}
        return Observations(clusters=clusters)

    assert told(compared(base, head, seen(Health.HEALTHY))) == told(compared(base, head))
    gone = replace(seen(Health.HEALTHY).clusters["m1"], reachable=False)
    lost = Observations(clusters={**seen(Health.HEALTHY).clusters, "m1": gone})
    plan = compared(base, head, lost)
    assert (told(plan), plan.is_complete) == ([], False)
    assert [problem.cluster for problem in plan.problems if problem.code == "cluster-not-read"] == ["m1"]


def test_what_base_holds_back_goes_out_when_it_is_let_go() -> None:
    template = config_map()
    held = fleet_of(template, policy("ConfigMap", "m1", suspension={"dispatching": True}))
    free = fleet_of(template, policy("ConfigMap", "m1"))
    why = "dispatching is suspended by PropagationPolicy demo/app"
    assert told(compared(held, free)) == [("create", "m1", "declared", None)]
    assert told(compared(free, held)) == []
    changed = fleet_of(config_map(x="2"), policy("ConfigMap", "m1", suspension={"dispatching": True}))
    assert told(compared(free, changed)) == [("update", "m1", "declared", why)]
    # It is due all the time, as in the members.
    assert told(compared(held, held)) == [("create", "m1", "declared", why)]


def test_what_waits_for_an_override_is_held() -> None:
    rule = policy("ConfigMap", "m1", dependentOverrides=["missing"])
    plan = compared(fleet_of(), fleet_of(config_map(), rule))
    assert told(plan) == [("create", "m1", "declared", "waits for OverridePolicy demo/missing")]


def test_a_cluster_without_its_document_is_left_as_it_is() -> None:
    documents = (deployment(), policy("Deployment", "m1", "m2", preserveResourcesOnDeletion=False))
    plan = compared(fleet_of(*documents), fleet_of(*documents, clusters=("m1", "m3")))
    assert plan.changes == ()


@pytest.mark.parametrize("names", [("", ""), ("", "shop"), ("shop", "")])
def test_a_store_without_a_name_is_compared_all_the_same(names: tuple[str, str]) -> None:
    rule = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)

    def of(name: str, *documents: dict[str, Any]) -> Fleet:
        fleet = fleet_of(rule, *documents)
        return replace(fleet, settings=replace(fleet.settings, name=name))

    base, head = of(names[0], config_map("a", x="1"), config_map("b")), of(names[1], config_map("a", x="2"))
    assert [(str(c.action), c.identity.name) for c in compared(base, head).changes] == [
        ("update", "a"),
        ("delete", "b"),
    ]


def test_another_fleet_is_refused_unless_it_is_the_same_renamed() -> None:
    documents = (config_map(), policy("ConfigMap", "m1"))
    other = {**FLEET, "metadata": {"name": "new"}}
    refused = compared(fleet_of(*documents), fleet_of(other, *documents))
    assert "object-of-another-tool" in {problem.code for problem in refused.problems}
    renamed = {**other, "spec": {"previousNames": ["test"]}}
    plan = compared(fleet_of(*documents), fleet_of(renamed, *documents))
    assert fields(plan) == [("metadata.labels['fleet.reconciler/fleet']", "declared")] * 2


def test_what_changes_under_the_same_template_is_an_override() -> None:
    base = fleet_of(deployment(), policy("Deployment", "m1"))
    image = "spec.template.spec.containers[name=main].image"
    head = fleet_of(deployment(), policy("Deployment", "m1"), image_override("mirror/nginx:1"))
    assert fields(compared(base, head)) == [(image, "override")]
    assert fields(compared(head, base)) == [(image, "override")]
    edited = fleet_of(deployment(image="nginx:2"), policy("Deployment", "m1"))
    assert fields(compared(base, edited)) == [(image, "declared")]


def test_our_mark_alone_is_ownership() -> None:
    plan = compared(fleet_of(config_map(), policy("ConfigMap", "m1")),
                    fleet_of(config_map(), policy("ConfigMap", "m1", name="other")))  # fmt: skip
    assert told(plan) == [("update", "m1", "ownership", None)]


def test_a_field_that_leaves_the_template_is_removed_and_spellings_are_no_change() -> None:
    rule = policy("ConfigMap", "m1")
    base = fleet_of(config_map(a="1", b="2"), rule)
    assert fields(compared(base, fleet_of(config_map(a="1"), rule))) == [("data.b", "removed")]
    spelled = {**config_map(a="1", b="2"), "binaryData": None}
    assert compared(base, fleet_of(spelled, rule)).changes == ()


def test_what_cannot_be_changed_in_place_is_a_replacement() -> None:
    head = deployment()
    head["spec"]["selector"] = {"matchLabels": {"b": "2"}}
    head["spec"]["template"]["metadata"]["labels"] = {"b": "2"}
    rule = policy("Deployment", "m1")
    (change,) = compared(fleet_of(deployment(), rule), fleet_of(head, rule)).changes
    assert (str(change.action), change.engine) == ("replace", "O")
    assert change.held is not None and "fleet.reconciler/replace" in change.held


def test_a_copy_that_stays_where_nothing_may_be_written_is_there() -> None:
    excluded = Constraint(
        identity=Identity("", "ConfigMap", "demo", "app"), cluster="m2", replicas_max=0, reason="", excludes=True
    )
    suspended: dict[str, Any] = {"suspension": {"dispatching": True}}
    base = fleet_of(config_map(), policy("ConfigMap", "m1", "m2", "m3"))
    head = fleet_of(config_map(), policy("ConfigMap", "m1", **suspended))
    bed = TestBed("m1", "m2", "m3")
    bed.observations = Observations(constraints=(excluded,))
    bed.run(base)
    live = bed.plan(head)
    plan = compared(base, head, bed.observations)
    assert [c.cluster for c in live.schedule.bindings[excluded.identity].targets] == ["m1"]
    assert plan.placements == live.plan.placements
    assert [(c.cluster, c.action, c.held) for c in plan.changes] == [
        (c.cluster, c.action, c.held) for c in live.plan.changes
    ]


def test_what_is_held_back_and_cannot_be_rendered_is_subtracted_once_from_what_the_guard_counts() -> None:
    unfit = [{"path": "/spec/absent/field", "operator": "replace", "value": 1}]
    override = {
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "o", "namespace": "demo"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                 "overrideRules": [{"overriders": {"plaintext": unfit}}]},
    }  # fmt: skip
    suspended: dict[str, Any] = {"suspension": {"dispatching": True}}
    guards = {**FLEET, "spec": {"guards": {"maxDeletes": 100, "maxDeletePercent": 50}}}
    kept = policy("ConfigMap", "m1", name="kept", preserveResourcesOnDeletion=False)
    held = [deployment(f"d{index}") for index in range(9)]
    both = (guards, override, kept, policy("Deployment", "m1", name="held", **suspended), *held)
    maps = [config_map(f"c{index}") for index in range(9)]
    plan = compared(fleet_of(*both, *maps), fleet_of(*both, *maps[4:]))
    assert [change.held for change in plan.changes if str(change.action) == "delete"] == [None] * 4


def test_a_namespace_is_released_after_what_the_guard_holds_in_it() -> None:
    maps = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    plan = compared(fleet_of(maps, *(config_map(f"c{n}") for n in range(6))), fleet_of(maps))
    held = {(one.identity.kind, str(one.action)): one.held for one in plan.changes}
    assert (held["ConfigMap", "delete"] or "").startswith("guard: ")
    assert held["Namespace", "release"] == "waits until ConfigMap demo/c0 has left"
    assert not plan.waves


@pytest.mark.parametrize("suspension", [{}, {"dispatching": True}], ids=["free", "suspended"])
def test_nothing_is_updated_in_a_version_that_its_definition_stops_serving(suspension: dict[str, Any]) -> None:
    everywhere = policy("Widget", "m1")
    everywhere["spec"]["resourceSelectors"][0]["apiVersion"] = "example.com/v1"
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    defined: dict[str, Any] = {
        "apiVersion": f"{KARMADA}/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": "kinds"},
        "spec": {"resourceSelectors": [kind], "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}},
    }  # fmt: skip
    base = fleet_of(defined, everywhere, definition("Namespaced", "v1", "v2"), widget("gear", "1"))
    defined["spec"]["suspension"] = suspension
    head = fleet_of(defined, everywhere, definition("Namespaced", "v2"), widget("gear", "2"))
    plan = compared(base, head)
    problems = [one.message for one in plan.problems if one.code == "kind-not-served"]
    kinds = [(change.identity.kind, bool(change.held)) for change in plan.changes]
    if suspension:
        assert (problems, kinds) == ([], [("CustomResourceDefinition", True), ("Widget", False)])
    else:
        assert kinds == [("CustomResourceDefinition", False)]
        assert problems == ["Widget demo/gear: example.com/v1 Widget is not served there; it serves version v2"]


@pytest.mark.parametrize("health", [None, Health.HEALTHY, Health.UNHEALTHY])
def test_a_later_turn_waits_for_what_was_observed_to_be_unhealthy_alone(health: Health | None) -> None:
    both = policy("Deployment", "m1"), policy("ConfigMap", "m1", name="maps")
    later = config_map("later")
    later["metadata"]["annotations"] = {"fleet.reconciler/wave": "1"}
    workload = Workload(gvk=GVK("apps", "v1", "Deployment"), identity=WEB, replicas=2, health=health or Health.HEALTHY)
    observed = {"m1": ClusterObservation(name="m1", workloads={WEB: workload})} if health else {}
    base, head = (fleet_of(*both, deployment(), one) for one in (config_map("later"), later))
    held = f"waits for {WEB} healthy" if health is Health.UNHEALTHY else None
    assert told(compared(base, head, Observations(clusters=observed))) == [("update", "m1", "declared", held)]


def test_what_base_could_not_read_is_named_where_the_comparison_is_incomplete() -> None:
    maps = policy("ConfigMap", "m1"), config_map()
    plan = compared(fleet_of(*maps, broken="a: [\n"), fleet_of(*maps))
    assert not plan.is_complete
    (problem,) = [one for one in plan.problems if one.code == "yaml-syntax"]
    assert problem.severity is Severity.WARNING
    assert problem.source.path == "broken.yaml"
    assert problem.message.startswith("r1 has this error, so not all is compared: ")
