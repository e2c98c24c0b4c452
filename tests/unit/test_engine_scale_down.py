"""Unknown never lets a share shrink, and a person's scale-down waits for nobody, in whole rounds.

Source: docs/concepts/moves.md; design#moves.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from tests.fakes.worlds import TestBed, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
SILENT = "waits for m3 healthy; it is unknown what m3 serves: no controller has reported its status"


def shares(**weights: int) -> Fleet:
    """A store that gives each cluster so many replicas."""
    names = [name for name, weight in weights.items() if weight]
    entries = [{"targetCluster": {"clusterNames": [name]}, "weight": weights[name]} for name in names]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                  "weightPreference": {"staticWeightList": entries}}  # fmt: skip
    placement = {"clusterAffinity": {"clusterNames": names}, "replicaScheduling": scheduling}
    return fleet_of(deployment(replicas=sum(weights.values())), policy("Deployment", placement=placement))


def duplicated(replicas: int, *clusters: str) -> Fleet:
    return fleet_of(deployment(replicas=replicas), policy("Deployment", *clusters))


def replicas_in(bed: TestBed) -> dict[str, int]:
    return {name: there[WEB].body["spec"]["replicas"] for name, there in bed.objects.items() if WEB in there}


def held(bed: TestBed, fleet: Fleet) -> dict[str, str]:
    return {c.cluster: c.held for c in bed.plan(fleet).plan.changes if c.identity == WEB and c.held}


def serving(bed: TestBed, cluster: str, available: int) -> None:
    """Its controller has seen the newest spec, and so many pods are available."""
    count = bed.objects[cluster][WEB].body["spec"]["replicas"]
    status: dict[str, Any] = {"observedGeneration": 1, "replicas": count, "updatedReplicas": count,
                              "availableReplicas": available}  # fmt: skip
    bed.edit(cluster, WEB, status=status)


@pytest.fixture
def moving() -> TestBed:
    """Six replicas serve in two clusters, and five are to go to a third, where no controller runs."""
    bed = TestBed()
    bed.run(shares(m1=3, m2=3))
    for cluster in ("m1", "m2"):
        serving(bed, cluster, 3)
    bed.run(shares(m1=3, m2=3))
    bed.run(shares(m1=1, m3=5))
    bed.edit("m3", WEB, status={})
    assert replicas_in(bed) == {"m1": 3, "m2": 3, "m3": 5}
    return bed


@pytest.mark.parametrize("is_placement_known", [True, False], ids=["recorded", "the round was cut off"])
def test_a_copy_of_which_nobody_knows_what_it_serves_takes_nothing_over_when_it_shrinks(
    moving: TestBed, *, is_placement_known: bool
) -> None:
    later = shares(m1=3, m2=1, m3=2)
    if not is_placement_known:
        moving.observations = TestBed().observations
    for _ in range(3):
        assert held(moving, later) == {"m2": SILENT}
        moving.run(later)
    assert replicas_in(moving) == {"m1": 3, "m2": 3, "m3": 2}
    serving(moving, "m3", 2)
    moving.run(later)
    assert replicas_in(moving) == {"m1": 3, "m2": 1, "m3": 2}


def test_a_move_stays_one_when_the_journal_is_lost(moving: TestBed) -> None:
    serving(moving, "m3", 0)
    for cluster, rows in moving.ledger.items():
        rows.pop(WEB)
        assert cluster
    moving.observations, moving.has_history = TestBed().observations, False
    later = shares(m1=3, m2=1, m3=2)
    assert held(moving, later) == {"m2": "waits for m3 healthy"}


def sick(first: Fleet) -> TestBed:
    """Placed and at rest, but the pods in m2 have never served."""
    bed = TestBed()
    bed.run(first)
    serving(bed, "m1", 5)
    serving(bed, "m2", 0)
    return bed


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (duplicated(5, "m1", "m2"), duplicated(4, "m1", "m2"), {"m1": 4, "m2": 4}),
        (shares(m1=5, m2=5), shares(m1=4, m2=4), {"m1": 4, "m2": 4}),
        (shares(m1=5, m2=5), shares(m1=4, m2=5), {"m1": 4, "m2": 5}),
        (shares(m1=5, m2=5), shares(m1=5, m2=4), {"m1": 5, "m2": 4}),
    ],
    ids=["each has all", "both shrink", "the sick one stays", "the sick one shrinks"],
)
@pytest.mark.parametrize("rounds", [0, 1], ids=["at once", "after a round at rest"])
def test_a_scale_down_waits_for_no_sick_cluster(
    first: Fleet, then: Fleet, expected: dict[str, int], rounds: int
) -> None:
    bed = sick(first)
    for _ in range(rounds):
        bed.run(first)
    assert held(bed, then) == {}
    bed.run(then)
    assert replicas_in(bed) == expected


@pytest.mark.parametrize(
    ("first", "then"),
    [(duplicated(5, "m1", "m2"), duplicated(4, "m1", "m2")), (shares(m1=5, m2=5), shares(m1=4, m2=4))],
    ids=["each has all", "shared out"],
)
def test_nor_when_the_healthy_cluster_is_away_for_a_while(first: Fleet, then: Fleet) -> None:
    bed = sick(first)
    bed.down = {"m1"}
    bed.run(then)
    bed.down = set()
    assert held(bed, then) == {}


def test_a_scale_down_waits_for_no_cluster_without_controllers_where_each_has_all() -> None:
    bed = sick(duplicated(5, "m1", "m2"))
    bed.edit("m2", WEB, status={})
    assert held(bed, duplicated(4, "m1", "m2")) == {}
    bed.down = {"m2"}
    assert held(bed, duplicated(4, "m1", "m2")) == {}


def test_what_leaves_a_cluster_still_waits_for_the_sick_one() -> None:
    bed = sick(duplicated(5, "m1", "m2"))
    bed.run(duplicated(5, "m1", "m2"))
    assert held(bed, duplicated(4, "m2")) == {"m1": "waits for m2 healthy"}
