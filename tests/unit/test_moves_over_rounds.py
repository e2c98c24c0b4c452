"""Moves over several rounds of small worlds: what is known of the copies decides, not which round it is.

Source: design#moves.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Intent
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.controller.cluster_reads.read_clusters import with_unanswered
from reconciler.observations.waiting_moves import NOBODY_TAKES_IT
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, job, policy

WEB = Identity("apps", "Deployment", "demo", "app")
APP = Identity("", "ConfigMap", "demo", "app")


def on(*clusters: str) -> Fleet:
    return fleet_of(deployment(), policy("Deployment", *clusters))


def due(bed: TestBed, fleet: Fleet) -> list[tuple[str, str, str | None]]:
    """Return the changes of a round to the workload: action, cluster, what it waits for if that is known."""
    changes = [change for change in bed.plan(fleet).plan.changes if change.identity in (WEB, APP)]
    return [(str(c.action), c.cluster, c.held and c.held.partition(";")[0]) for c in changes]


@pytest.fixture
def bed() -> TestBed:
    """The workload runs in m1 as it has for long."""
    made = TestBed()
    made.run(on("m1"))
    made.healthy("m1", WEB)
    made.run(on("m1"))
    assert made.ledger["m1"][WEB].established == 2
    return made


def test_it_does_not_matter_what_a_round_takes_for_the_placement_before_it(bed: TestBed) -> None:
    before = bed.observations
    bed.run(on("m2"))
    for observations in (before, bed.observations):
        bed.observations = observations
        assert due(bed, on("m2")) == [("delete", "m1", "waits for m2 healthy")]


def test_adding_a_cluster_and_then_removing_another_is_a_move_as_well(bed: TestBed) -> None:
    bed.run(on("m1", "m2"))
    bed.run(on("m1", "m2"))
    assert due(bed, on("m2")) == [("delete", "m1", "waits for m2 healthy")]
    bed.healthy("m2", WEB)
    assert due(bed, on("m2")) == [("delete", "m1", None)]


def test_a_copy_whose_cluster_fell_silent_after_a_crash_takes_nothing_over(bed: TestBed) -> None:
    before = bed.observations
    bed.run(on("m2"))
    bed.observations = before  # The round never ended; the intent of its write was closed after the restart.
    bed.down = {"m2"}
    assert due(bed, on("m2")) == [("delete", "m1", "waits for m2 healthy")]


def test_a_copy_stays_where_nothing_can_take_it(bed: TestBed) -> None:
    silent = ClusterObservation(name="m2", reachable=False)
    # A crash before the end of the round: the copy in m1 was made, its placement never recorded.
    bed.observations = replace(bed.observations, previous={}, clusters={"m2": silent})
    bed.down = {"m2"}
    assert due(bed, on("m2")) == [("delete", "m1", NOBODY_TAKES_IT.why)]


def test_an_edit_and_a_return_in_the_middle_of_a_move(bed: TestBed) -> None:
    bed.run(on("m2"))
    bed.run(on("m3"))
    assert [held for _, cluster, held in due(bed, on("m3")) if cluster in ("m1", "m2")] == ["waits for m3 healthy"] * 2
    assert due(bed, on("m1")) == [("delete", "m2", None), ("delete", "m3", None)]


def test_another_image_while_the_new_copy_is_not_up_leaves_the_old_one_as_it_is(bed: TestBed) -> None:
    bed.run(on("m2"))
    newer = fleet_of(deployment(image="nginx:2"), policy("Deployment", "m2"))
    bed.healthy("m2", WEB)
    assert due(bed, newer) == [("delete", "m1", "waits for m2 healthy"), ("update", "m2", None)]


def test_pods_of_the_old_image_do_not_take_over_where_fewer_replicas_are_to_stay(bed: TestBed) -> None:
    bed.run(on("m1", "m2"))
    bed.healthy("m2", WEB)
    bed.run(on("m1", "m2"))
    newer = fleet_of(deployment(replicas=1, image="nginx:2"), policy("Deployment", "m2"))
    bed.run(newer)
    assert {name: objects[WEB].body["spec"]["replicas"] for name, objects in bed.objects.items() if WEB in objects} == {
        "m1": 2, "m2": 1
    }  # fmt: skip
    for updated, available, is_held in ((0, 1, True), (1, 0, True), (1, 1, False)):
        status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": updated, "availableReplicas": available}
        bed.edit("m2", WEB, status=status)
        assert due(bed, newer) == [("delete", "m1", "waits for m2 healthy" if is_held else None)]


def test_a_new_object_begins_anew(bed: TestBed) -> None:
    bed.run(on("m1", "m2"))
    bed.healthy("m2", WEB)
    bed.run(on("m1", "m2"))
    assert bed.ledger["m2"][WEB].established == 2
    live = bed.objects["m2"][WEB]
    bed.objects["m2"][WEB] = replace(live, uid="another", body={**live.body, "status": {}})
    assert due(bed, on("m2")) == [("delete", "m1", "waits for m2 healthy")]


def test_a_settled_copy_that_is_silent_does_not_hold_up_leaving_a_third_cluster() -> None:
    bed, everywhere = TestBed(), fleet_of(config_map(), policy("ConfigMap", "m1", "m2", "m3"))
    bed.run(everywhere)
    bed.run(everywhere)
    bed.down = {"m3"}
    assert due(bed, fleet_of(config_map(), policy("ConfigMap", "m2", "m3"))) == [("delete", "m1", None)]
    bed.down = {"m2", "m3"}
    (change,) = due(bed, fleet_of(config_map(), policy("ConfigMap", "m2", "m3")))
    assert change == ("delete", "m1", "waits for m2, m3 healthy")


def test_a_job_that_may_run_where_nobody_answers_is_not_begun_elsewhere() -> None:
    bed, identity = TestBed(), Identity("batch", "Job", "demo", "app")
    intent = Intent(cluster="m2", gvk=GVK("batch", "v1", "Job"), identity=identity, action=Action.CREATE)
    bed.ledger = {"m1": {}, "m3": {}, "m2": dict(with_unanswered({}, [intent])["m2"])}
    bed.down = {"m2"}
    moved = fleet_of(job(), policy("Job", "m1"))
    assert [c.cluster for c in bed.plan(moved).plan.changes if c.identity == identity] == []
    bed.ledger["m2"] = {}
    assert [c.cluster for c in bed.plan(moved).plan.changes if c.identity == identity] == ["m1"]


def test_a_job_that_begins_in_the_middle_of_a_move_does_not_run_twice() -> None:
    bed, identity, moved = TestBed(), Identity("batch", "Job", "demo", "app"), fleet_of(job(), policy("Job", "m2"))
    bed.run(fleet_of(job(), policy("Job", "m1")))
    bed.run(moved)
    assert [name for name, objects in bed.objects.items() if identity in objects] == []
    bed.run(moved)
    assert [name for name, objects in bed.objects.items() if identity in objects] == ["m2"]


def test_an_order_and_an_edit_in_one_take_away_no_job_that_only_the_edit_is_about() -> None:
    bed, identity = TestBed(), Identity("batch", "Job", "demo", "app")
    bed.run(fleet_of(job(), policy("Job", "m1", "m2")))
    for cluster in ("m1", "m2"):
        bed.edit(cluster, identity, status={"active": 1})
    order = Constraint(identity=identity, cluster="m1", replicas_max=0, excludes=True, reason="x", tick=Tick.EVICTION)
    bed.observations = replace(bed.observations, constraints=(order,))
    edited = fleet_of(job(), policy("Job", "m1", "m3"))
    due = {(str(c.action), c.cluster): c.held for c in bed.plan(edited).plan.changes if c.identity == identity}
    assert due == dict.fromkeys([("delete", "m1"), ("delete", "m2")], "the run has started and is not moved")
