"""Placements by free room that nobody observed: an offline comparison names it and does not judge it."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.clusters import ClusterNode, ClusterObservation, Observations
from reconciler.api.plan import NotEvaluated, Plan
from reconciler.api.refs import Identity
from reconciler.cli.diff import exit_code
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.markdown import plan_markdown
from tests.fakes.worlds import FLEET, NOW, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
DIVIDED = {"replicaSchedulingType": "Divided"}
WEIGHTED = {**DIVIDED, "replicaDivisionPreference": "Weighted"}
DYNAMIC = {"replicaScheduling": {**WEIGHTED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}}
WAYS: dict[str, dict[str, Any]] = {
    "dynamic weights": DYNAMIC,
    "Aggregated": {"replicaScheduling": {**DIVIDED, "replicaDivisionPreference": "Aggregated"}},
    "a gang": {"replicaScheduling": {**DIVIDED, "customSchedulingType": "Gang"}},
    "spread constraints": {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
}
OVERRIDE = {
    "apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "OverridePolicy",
    "metadata": {"name": "o", "namespace": "demo"},
    "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "overrideRules": [
        {"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}}]},
}  # fmt: skip


def by_room(way: str = "dynamic weights", **spec: Any) -> dict[str, Any]:
    return policy("Deployment", placement=WAYS[way], **spec)


def compared(base: list[dict[str, Any]], head: list[dict[str, Any]], seen: Observations | None = None) -> Plan:
    plan = compare_revisions(fleet_of(*base), fleet_of(*head), seen or Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert plan.is_complete == (not plan.unjudged)
    return plan


def only_one(plan: Plan) -> NotEvaluated:
    assert [change for change in plan.changes if change.identity.kind != "Namespace"] == []
    (found,) = plan.unjudged
    assert found.identity == WEB
    assert exit_code(plan, detailed=True) == 4
    return found


def observed(*clusters: str) -> Observations:
    node = ClusterNode(name="n", allocatable={"cpu": 8000, "memory": 2**33, "pods": 100})
    return Observations(clusters={name: ClusterObservation(name=name, nodes=(node,)) for name in clusters})


@pytest.mark.parametrize("way", WAYS)
def test_a_template_that_changes_is_named_with_its_fields_and_why(way: str) -> None:
    found = only_one(compared([deployment(), by_room(way)], [deployment(image="nginx:2"), by_room(way)]))
    assert found.why.startswith(way)
    assert "m1, m2, m3" in found.why
    assert found.notes == ("its template changes",)
    path = "spec.template.spec.containers[name=main].image"
    assert [(f.path, f.before, f.after) for f in found.fields] == [(path, "nginx:1", "nginx:2")]


@pytest.mark.parametrize("way", WAYS)
def test_with_observations_everything_is_judged(way: str) -> None:
    seen = observed("m1", "m2", "m3")
    plan = compared([deployment(), by_room(way)], [deployment(image="nginx:2"), by_room(way)], seen)
    assert plan.unjudged == ()
    assert "update" in {str(change.action) for change in plan.changes if change.identity == WEB}


def test_what_does_not_change_is_not_named() -> None:
    plan = compared([deployment(), by_room()], [deployment(), by_room(), config_map()])
    assert (plan.unjudged, plan.is_complete, exit_code(plan, detailed=True)) == ((), True, 0)


def test_a_policy_that_changes_is_named_with_its_fields() -> None:
    found = only_one(compared([deployment(), by_room()], [deployment(), by_room("Aggregated", propagateDeps=True)]))
    assert found.notes == ("PropagationPolicy demo/app changes",)
    assert [(f.path, f.before, f.after) for f in found.policy_fields] == [
        ("spec.placement.replicaScheduling", "dynamic-weight", "aggregated"),
        ("spec.propagateDeps", False, True),
    ]


def test_what_comes_and_what_changes_hands_is_named() -> None:
    assert only_one(compared([by_room()], [deployment(), by_room()])).notes == (
        "its template is new",
        "its policy was none and is PropagationPolicy demo/app",
    )
    other = {**by_room(), "metadata": {"name": "b", "namespace": "demo"}}
    assert only_one(compared([deployment(), by_room()], [deployment(), other])).notes == (
        "its policy was PropagationPolicy demo/app and is PropagationPolicy demo/b",
    )


@pytest.mark.parametrize(("keep", "fate"), [(False, "deleted in the clusters"), (True, "released in the clusters")])
def test_what_is_deleted_says_what_becomes_of_it_wherever_it_runs(keep: bool, fate: str) -> None:
    rule = by_room(preserveResourcesOnDeletion=keep)
    for head in ([], [rule], [deployment()]):
        assert fate in only_one(compared([deployment(), rule], head)).notes[-1]


def test_overrides_clusters_and_what_it_waits_for_are_named() -> None:
    base = [deployment(), by_room()]
    assert only_one(compared(base, [*base, OVERRIDE])).notes == ("OverridePolicy demo/o changes what it overrides",)
    fewer = compare_revisions(
        fleet_of(*base), fleet_of(*base, clusters=("m1", "m2")), Observations(), NOW, interpreters=BUILT_IN_KINDS
    )
    assert only_one(fewer).notes == ("the document of cluster m3 left the store",)
    waits = [deployment(), by_room(dependentOverrides=["o"])]
    assert "it waits for OverridePolicy demo/o" in only_one(compared(base, waits)).notes
    partial = {**FLEET, "spec": {"placement": {"partial": True}}}
    assert only_one(compared(base, [*base, partial])).notes == ("spec.placement.partial of the Fleet changes",)


def test_a_cluster_that_is_not_observed_leaves_it_open() -> None:
    seen = observed("m1", "m2")
    found = only_one(compared([deployment(), by_room()], [deployment(image="nginx:2"), by_room()], seen))
    assert "the free room of m3 is not known" in found.why


def test_a_known_placement_is_judged_as_long_as_it_can_stay() -> None:
    placed = PreviousPlacement(identity=WEB, targets=(TargetCluster("m1", 2),))
    seen = Observations(previous={WEB: placed})
    plan = compared([deployment(), by_room()], [deployment(image="nginx:2"), by_room()], seen)
    assert [(str(c.action), c.cluster) for c in plan.changes if c.identity == WEB] == [("update", "m1")]
    more = compared([deployment(), by_room()], [deployment(replicas=5), by_room()], seen)
    assert [field.path for field in only_one(more).fields] == ["spec.replicas"]


def test_what_follows_it_is_not_judged_either_and_secrets_stay_hidden() -> None:
    def store(value: str) -> list[dict[str, Any]]:
        web = deployment()
        web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "key"}}]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "demo"},
                  "stringData": {"k": value}}  # fmt: skip
        return [web, secret, by_room(propagateDeps=True)]

    plan = compared(store("swordfish"), store("marlin-77"))
    (found,) = plan.unjudged
    assert (found.identity.kind, found.why) == (
        "Secret",
        "it follows Deployment demo/app, whose placement is not computed",
    )
    for text in (plan_text(plan), plan_markdown(plan), str(plan_document(plan))):
        assert "swordfish" not in text
        assert "marlin" not in text
        assert "stringData" in text


def test_it_is_told_in_every_form_and_folded_in_none() -> None:
    plan = compared([deployment(), by_room()], [deployment(image="nginx:2"), by_room("Aggregated")])
    text = plan_text(plan)
    assert text.startswith("1 not judged; incomplete\n")
    assert "INCOMPLETE" in text
    assert "Deployment demo/app" in text
    assert "nginx:1 → nginx:2" in text
    markdown = plan_markdown(plan)
    assert "### 1 not judged; incomplete\n" in markdown
    assert "nginx:2" in markdown.partition("<details>")[0]
    document = plan_document(plan)
    assert document["complete"] is False
    (found,) = document["unjudged"]
    assert found["resource"]["name"] == "app"
    assert found["policyFields"][0]["path"] == "spec.placement.replicaScheduling"
