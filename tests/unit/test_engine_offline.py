"""Two revisions compared without a cluster. Source: design, "Diff", engine O."""

from __future__ import annotations

from reconciler.engine import compare_revisions, decide
from reconciler.model.observation import Observations
from reconciler.model.refs import Identity
from tests.unit.worlds import NOW, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
SPREAD = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]


def test_the_placement_of_the_first_revision_is_the_previous_one_of_the_second() -> None:
    """One copy goes to m2 and stays there when m1 may be used too, as it would in the clusters."""

    def store(*clusters: str) -> dict[str, object]:
        placement = {"clusterAffinity": {"clusterNames": [*clusters]}, "spreadConstraints": SPREAD}
        return policy("Deployment", placement=placement)

    base = fleet_of(deployment(), store("m2"))
    head = fleet_of(deployment(), store("m1", "m2"))
    assert [c for c in compare_revisions(base, head, Observations(), NOW).changes if c.identity == WEB] == []
    assert decide(head, Observations(), NOW).bindings[WEB].clusters == ("m1",)
