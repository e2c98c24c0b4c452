"""An object waits for its Namespace, and for the definition of its kind, where these are held back."""

from __future__ import annotations

from typing import Any

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Plan
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from reconciler.render import changed_identities
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, TestBed, config_map, fleet_of, policy

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
SUSPENDED: dict[str, Any] = {"suspension": {"dispatching": True}}
WAITS = "waits for Namespace demo: dispatching is suspended by ClusterPropagationPolicy spaces"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.ex.io"},
    "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
}  # fmt: skip
WIDGETS = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "demo"}}


def everywhere(name: str, kind: str, api: str, *clusters: str, **spec: Any) -> dict[str, Any]:
    placement = {"clusterAffinity": {"clusterNames": list(clusters)}}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
            "spec": {"resourceSelectors": [{"apiVersion": api, "kind": kind}], "placement": placement,
                     **spec}}  # fmt: skip


def space(*inhabitants: dict[str, Any], **spec: Any) -> Fleet:
    """A claimed Namespace with ConfigMaps in m1. `spec`: of the policy that claims it."""
    claims = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    return fleet_of(NAMESPACE, everywhere("spaces", "Namespace", "v1", "m1", **spec), claims, *inhabitants)


def kind(*clusters: str, **spec: Any) -> Fleet:
    """A definition in these clusters, with an object of its kind in m1 and m2."""
    return fleet_of(
        DEFINITION, WIDGETS,
        everywhere("kinds", "CustomResourceDefinition", "apiextensions.k8s.io/v1", *clusters, **spec),
        everywhere("widgets", "Widget", "ex.io/v1", "m1", "m2"),
    )  # fmt: skip


def told(plan: Plan) -> list[tuple[str, str, str, str | None]]:
    return [(change.identity.kind, change.cluster, str(change.action), change.held) for change in plan.changes]


def offline(base: Fleet, head: Fleet) -> list[tuple[str, str, str, str | None]]:
    return told(compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS))


def test_what_lives_in_a_namespace_that_is_held_back_waits_with_it() -> None:
    bed = TestBed("m1")
    planned = bed.run(space(config_map(), **SUSPENDED))
    assert told(planned.plan) == [
        ("ConfigMap", "m1", "create", WAITS),
        ("Namespace", "m1", "create", "dispatching is suspended by ClusterPropagationPolicy spaces"),
    ]
    assert planned.plan.waves == ()


def test_what_lives_in_a_namespace_that_is_frozen_waits_with_it() -> None:
    faulty = "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\nbogus: 1\n"
    claims = everywhere("spaces", "Namespace", "v1", "m1")
    fleet = fleet_of(config_map(), NAMESPACE, claims, policy("ConfigMap", "m1"), broken=faulty)
    found = told(TestBed("m1").plan(fleet).plan)
    why = "it is frozen, since the store cannot be read completely"
    assert found == [("ConfigMap", "m1", "create", f"waits for Namespace demo: {why}")]


def test_a_namespace_that_is_there_is_waited_for_by_nobody() -> None:
    bed = TestBed("m1")
    bed.run(space(config_map("one")))
    head = space(config_map("one"), config_map("two"), **SUSPENDED)
    assert told(bed.plan(head).plan)[0] == ("ConfigMap", "m1", "create", None)
    assert offline(space(config_map("one")), head)[0] == ("ConfigMap", "m1", "create", None)


def test_lifting_a_hold_of_a_namespace_lets_go_what_lives_in_it() -> None:
    base, head = space(config_map(), **SUSPENDED), space(config_map())
    bed = TestBed("m1")
    bed.run(base)
    live = bed.plan(head).plan
    assert told(live) == [("ConfigMap", "m1", "create", None), ("Namespace", "m1", "create", None)]
    assert offline(base, head) == told(live)
    # A round that settles only what a commit changes settles these, too.
    before, after = (schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS) for fleet in (base, head))
    assert {identity.kind for identity in changed_identities(before, after)} == {"ConfigMap", "Namespace"}


def test_two_revisions_that_hold_a_namespace_back_hold_what_lives_in_it() -> None:
    base, head = space(config_map(), **SUSPENDED), space(config_map(v="2"), **SUSPENDED)
    bed = TestBed("m1")
    bed.run(base)
    assert ("ConfigMap", "m1", "create", WAITS) in offline(base, head)
    assert offline(base, head) == told(bed.plan(head).plan)


def test_an_object_whose_definition_is_held_back_waits_with_it() -> None:
    found = told(TestBed("m1", "m2").plan(kind("m1", "m2", **SUSPENDED)).plan)
    why = "dispatching is suspended by ClusterPropagationPolicy kinds"
    waits = f"waits for CustomResourceDefinition widgets.ex.io: {why}"
    assert [change for change in found if change[0] == "Widget"] == [
        ("Widget", "m1", "create", waits),
        ("Widget", "m2", "create", waits),
    ]


def test_a_definition_that_comes_to_a_cluster_brings_the_objects_that_wait_for_it() -> None:
    base, head = kind("m1"), kind("m1", "m2")
    assert offline(base, head) == [
        ("CustomResourceDefinition", "m2", "create", None),
        ("Widget", "m2", "create", None),
    ]
