"""Observations of several processes, put together. Source: ADR 21."""

from __future__ import annotations

from reconciler.model.binding import Constraint, PreviousPlacement, TargetCluster
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.model.refs import Identity
from reconciler.stages.observations import put_together

WEB, API = (Identity("apps", "Deployment", "demo", name) for name in ("web", "api"))


def placed(identity: Identity, cluster: str) -> dict[Identity, PreviousPlacement]:
    return {identity: PreviousPlacement(identity=identity, targets=(TargetCluster(cluster, 1),))}


def seen(name: str, at: str, *, reachable: bool = True) -> ClusterObservation:
    return ClusterObservation(name=name, observed_at=at, reachable=reachable)


def test_of_a_cluster_the_first_counts_that_reached_it() -> None:
    hub = Observations(clusters={"m1": seen("m1", "a"), "far": seen("far", "a", reachable=False)})
    far = Observations(clusters={"m1": seen("m1", "b", reachable=False), "far": seen("far", "b")})
    late = Observations(
        clusters={"m1": seen("m1", "c"), "far": seen("far", "c"), "m2": seen("m2", "c", reachable=False)}
    )
    found = put_together([hub, far, late]).clusters
    assert {name: (each.observed_at, each.reachable) for name, each in found.items()} == {
        "far": ("b", True), "m1": ("a", True), "m2": ("c", False),
    }  # fmt: skip


def test_of_a_placement_the_first_counts_and_constraints_are_those_of_all() -> None:
    one, two = (Constraint(identity=WEB, cluster=name, replicas_max=0, reason="full") for name in ("m1", "m2"))
    hub = Observations(previous=placed(WEB, "m1"), constraints=(one,))
    far = Observations(previous={**placed(WEB, "far"), **placed(API, "far")}, constraints=(one, two))
    found = put_together([hub, far])
    assert found.previous == {**placed(API, "far"), **placed(WEB, "m1")}
    assert found.constraints == (one, two)
