"""Two revisions compared without a cluster. Source: design#offline-diff."""

from __future__ import annotations

import pytest

from reconciler.api.binding import Constraint
from reconciler.api.clusters import ClusterObservation, Observations
from reconciler.api.plan import Plan
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import NOW, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
SPREAD = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]


def test_the_placement_of_the_first_revision_is_the_previous_one_of_the_second() -> None:
    """One copy goes to m2 and stays there when m1 may be used too, as it would in the clusters."""

    def store(*clusters: str) -> dict[str, object]:
        placement = {"clusterAffinity": {"clusterNames": [*clusters]}, "spreadConstraints": SPREAD}
        return policy("Deployment", placement=placement)

    base = fleet_of(deployment(), store("m2"))
    head = fleet_of(deployment(), store("m1", "m2"))
    assert [
        c
        for c in compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS).changes
        if c.identity == WEB
    ] == []
    assert schedule_fleet(head, Observations(), NOW, interpreters=BUILT_IN_KINDS).bindings[WEB].clusters == ("m1",)


def test_a_suspension_that_comes_with_a_smaller_spread_keeps_what_is_there_a_place_to_stay() -> None:
    """All copies that are there count where nothing new may be written, not those alone that are to leave."""
    app = Identity("", "ConfigMap", "demo", "app")
    smaller = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]
    base = fleet_of(config_map(), policy("ConfigMap", "m1", "m2", "m3"))
    placement = {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3"]}, "spreadConstraints": smaller}
    head = fleet_of(config_map(), policy("ConfigMap", placement=placement, suspension={"dispatching": True}))
    cap = Constraint(identity=app, cluster="m1", replicas_max=2, reason="given")
    plan = compare_revisions(base, head, Observations(constraints=(cap,)), NOW, interpreters=BUILT_IN_KINDS)
    (placed,) = (placed for placed in plan.placements if placed.identity == app)
    assert [cluster for cluster, _ in placed.after] == ["m1", "m2"]
    assert [(str(c.action), c.cluster) for c in plan.changes if c.identity == app] == [("delete", "m3")]


def test_guards_do_not_count_what_a_cluster_cannot_have() -> None:
    """Forty widgets are placed where nobody serves widgets: four of five ConfigMaps are no tenth of what is there."""
    maps = [config_map(f"c{number}") for number in range(5)]
    widgets = [
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}", "namespace": "demo"}}
        for number in range(40)
    ]
    claims = policy("ConfigMap", "m1", preserveResourcesOnDeletion=False)
    claims["spec"]["resourceSelectors"] = [
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "example.com/v1", "kind": "Widget"},
    ]
    base, head = fleet_of(claims, *maps, *widgets), fleet_of(claims, maps[0], *widgets)
    seen = ClusterObservation(name="m1", apis=frozenset({GVK("", "v1", "ConfigMap"), GVK("", "v1", "Namespace")}))

    def held(observations: Observations) -> set[bool]:
        plan = compare_revisions(base, head, observations, NOW, interpreters=BUILT_IN_KINDS)
        return {change.held is not None for change in plan.changes if change.action == "delete"}

    assert held(Observations(clusters={"m1": seen})) == {True}
    assert held(Observations()) == {False}


@pytest.mark.parametrize(("before", "after"), [("Aggregated", "Weighted"), ("Weighted", "Aggregated")])
def test_what_is_not_judged_names_the_division_that_asks_for_room(before: str, after: str) -> None:
    """Static weights ask for none; what they divided stays where it is when the rest is filled by room."""

    def plan_of(*preferences: str) -> Plan:
        scheduling = ({"replicaSchedulingType": "Divided", "replicaDivisionPreference": one} for one in preferences)
        fleets = [
            fleet_of(deployment(), policy("Deployment", placement={"replicaScheduling": one})) for one in scheduling
        ]
        return compare_revisions(fleets[0], fleets[1], Observations(), NOW, interpreters=BUILT_IN_KINDS)

    plan = plan_of(before, after)
    assert plan.is_complete is (before == "Weighted")
    assert plan.changes == (), "nor is it judged whether its Namespace comes"
    assert [one.why.partition(",")[0] for one in plan.unjudged] == (
        [] if before == "Weighted" else ["Aggregated fills clusters by free room"]
    )
