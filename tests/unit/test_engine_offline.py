"""Two revisions compared without a cluster. Source: design#offline-diff."""

from __future__ import annotations

from reconciler.engine import compare_revisions, decide
from reconciler.interpreters.registry import BUILT_IN_KINDS
from reconciler.model.binding import Constraint
from reconciler.model.observation import Observations
from reconciler.model.refs import Identity
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
    assert decide(head, Observations(), NOW, interpreters=BUILT_IN_KINDS).bindings[WEB].clusters == ("m1",)


def test_a_suspension_that_comes_with_a_smaller_spread_keeps_what_is_there_a_place_to_stay() -> None:
    """Where nothing new may be written, all copies that are there count, not those alone that are to leave."""
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
