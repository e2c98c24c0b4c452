"""A StatefulSet with volume claims does not move by itself: its data stay in the cluster that it leaves."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Plan
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import compare_revisions
from reconciler.templates import claims_of, why_confirmed
from tests.fakes import worlds
from tests.fakes.worlds import FLEET, NOW, TestBed, deployment, fleet_of, policy

DB = Identity("apps", "StatefulSet", "demo", "app")
STAY = "guard: its volume claims (data) stay in m1, and copies elsewhere have none of their data"
DELETES: dict[str, Any] = {"preserveResourcesOnDeletion": False}


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "SERVED", {**worlds.SERVED, GVK("apps", "v1", "StatefulSet"): True})


def stateful(*, claims: bool = True, **spec: Any) -> dict[str, Any]:
    document = deployment()
    made = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}
    return {**document, "kind": "StatefulSet", "spec": {**document["spec"], **(made if claims else {}), **spec}}


def for_sets(*clusters: str, **spec: Any) -> dict[str, Any]:
    document = policy("Deployment", *clusters, **spec)
    selector = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    return {**document, "spec": {**document["spec"], "resourceSelectors": [selector]}}


def confirming(digest: str) -> dict[str, Any]:
    return {**FLEET, "spec": {"guards": {"confirm": digest}}}


def of_set(plan: Plan) -> list[tuple[str, str, str | None]]:
    return [(str(c.action), c.cluster, c.held) for c in plan.changes if c.identity == DB]


def healthy(bed: TestBed, cluster: str) -> None:
    live = bed.objects[cluster][DB]
    count = live.body["spec"]["replicas"]
    status = {"observedGeneration": 1, "replicas": count, "readyReplicas": count, "availableReplicas": count,
              "updatedReplicas": count, "currentRevision": "a", "updateRevision": "a"}  # fmt: skip
    bed.edit(cluster, DB, status=status)


def placed(fleet: Fleet) -> TestBed:
    bed = TestBed()
    bed.run(fleet)
    for cluster in ("m1", "m2", "m3"):
        if DB in bed.objects[cluster]:
            healthy(bed, cluster)
    bed.run(fleet)
    return bed


def test_move_is_held_on_both_sides_until_its_digest_is_confirmed() -> None:
    base, head = fleet_of(stateful(), for_sets("m1")), fleet_of(stateful(), for_sets("m2"))
    bed = placed(base)
    held = bed.plan(head).plan
    assert of_set(held) == [("delete", "m1", STAY), ("create", "m2", STAY)]
    offline = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    assert of_set(offline) == of_set(held)
    assert offline.held_digest == held.held_digest
    confirmed = fleet_of(stateful(), for_sets("m2"), confirming(held.held_digest))
    assert of_set(bed.run(confirmed).plan) == [("delete", "m1", "waits for m2 healthy"), ("create", "m2", None)]
    healthy(bed, "m2")
    bed.run(confirmed)
    assert DB not in bed.objects["m1"]
    assert of_set(bed.plan(confirmed).plan) == []


def test_cluster_that_leaves_while_others_stay_is_held_too() -> None:
    bed = placed(fleet_of(stateful(), for_sets("m1", "m2")))
    assert of_set(bed.plan(fleet_of(stateful(), for_sets("m2"))).plan) == [("delete", "m1", STAY)]


def test_cluster_that_comes_is_no_loss() -> None:
    bed = placed(fleet_of(stateful(), for_sets("m1")))
    assert of_set(bed.plan(fleet_of(stateful(), for_sets("m1", "m2"))).plan) == [("create", "m2", None)]


def test_set_without_claims_moves_as_everything_does() -> None:
    bed = placed(fleet_of(stateful(claims=False), for_sets("m1")))
    plan = bed.plan(fleet_of(stateful(claims=False), for_sets("m2"))).plan
    assert ("create", "m2", None) in of_set(plan)
    assert not plan.held_digest


def test_template_that_leaves_is_no_move() -> None:
    bed = placed(fleet_of(stateful(), for_sets("m1", **DELETES)))
    assert of_set(bed.plan(fleet_of(for_sets("m1", **DELETES))).plan) == [("delete", "m1", None)]


def test_deletion_that_takes_the_claims_along_is_held() -> None:
    retention: dict[str, Any] = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}
    bed = placed(fleet_of(stateful(**retention), for_sets("m1", **DELETES)))
    [(action, cluster, held)] = of_set(bed.plan(fleet_of(for_sets("m1", **DELETES))).plan)
    assert (action, cluster) == ("delete", "m1")
    assert held == "guard: its volume claims (data) in m1 are deleted with it"


@pytest.mark.parametrize(("tick", "held"), [(Tick.FAILOVER, STAY), (Tick.EVICTION, None)])
def test_what_ticks_move_is_held_and_what_a_person_evicts_is_not(tick: Tick, held: str | None) -> None:
    fleet = fleet_of(stateful(), for_sets("m1", "m2"))
    bed = placed(fleet)
    order = Constraint(identity=DB, cluster="m1", replicas_max=0, excludes=True, reason="r", tick=tick, since=NOW)
    bed.observations = replace(bed.observations, constraints=(order,))
    assert of_set(bed.plan(fleet).plan) == [("delete", "m1", held)]


def test_only_claims_of_a_set_count() -> None:
    assert claims_of(DB, stateful()) == ("data",)
    assert claims_of(Identity("apps", "Deployment", "demo", "app"), stateful()) == ()
    assert why_confirmed(DB, stateful(claims=False), "m1", moves=True) == ""


SHARE_STAYS = (
    "guard: the volume claims (data) of the replicas that go stay in m1, and replicas elsewhere have none of their data"
)


def weighted(**weights: int) -> dict[str, Any]:
    entries = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    return for_sets(
        placement={
            "clusterAffinity": {"clusterNames": list(weights)},
            "replicaScheduling": {**scheduling, "weightPreference": {"staticWeightList": entries}},
        }
    )


def test_share_that_shrinks_for_another_is_held_on_both_sides_until_its_digest_is_confirmed() -> None:
    base = fleet_of(stateful(replicas=6), weighted(m1=1, m2=1))
    head = fleet_of(stateful(replicas=6), weighted(m1=1, m2=2))
    bed = placed(base)
    held = bed.plan(head).plan
    assert of_set(held) == [("update", "m1", SHARE_STAYS), ("update", "m2", SHARE_STAYS)]
    offline = compare_revisions(base, head, bed.observations, NOW, interpreters=BUILT_IN_KINDS)
    assert of_set(offline) == of_set(held)
    assert offline.held_digest == held.held_digest
    confirmed = fleet_of(stateful(replicas=6), weighted(m1=1, m2=2), confirming(held.held_digest))
    assert of_set(bed.run(confirmed).plan) == [("update", "m1", "waits for m2 healthy"), ("update", "m2", None)]
    healthy(bed, "m2")
    assert of_set(bed.run(confirmed).plan) == [("update", "m1", None)]
    assert of_set(bed.plan(confirmed).plan) == []


def test_other_edits_of_a_share_that_is_held_go_out_where_it_shrinks() -> None:
    bed = placed(fleet_of(stateful(replicas=6), weighted(m1=1, m2=1)))
    head = fleet_of(stateful(replicas=6, minReadySeconds=7), weighted(m1=1, m2=2))
    held = of_set(bed.run(head).plan)
    assert sorted(held, key=str) == [
        ("update", "m1", SHARE_STAYS), ("update", "m1", None), ("update", "m2", SHARE_STAYS)]  # fmt: skip


def test_cluster_that_takes_replicas_over_is_held_with_those_that_go() -> None:
    bed = placed(fleet_of(stateful(replicas=6), weighted(m1=1, m2=1)))
    plan = bed.plan(fleet_of(stateful(replicas=6), weighted(m1=1, m2=3, m3=2))).plan
    assert of_set(plan) == [("update", "m1", SHARE_STAYS), ("create", "m3", SHARE_STAYS)]


def test_replicas_that_merely_come_or_go_are_no_move() -> None:
    bed = placed(fleet_of(stateful(replicas=6), weighted(m1=1, m2=1)))
    fewer = bed.run(fleet_of(stateful(replicas=4), weighted(m1=1, m2=1))).plan
    assert of_set(fewer) == [("update", "m1", None), ("update", "m2", None)]
    more = bed.run(fleet_of(stateful(replicas=8), weighted(m1=1, m2=1))).plan
    assert of_set(more) == [("update", "m1", None), ("update", "m2", None)]


def test_replicas_that_somebody_scaled_are_healed_unconfirmed() -> None:
    fleet = fleet_of(stateful(replicas=6), weighted(m1=1, m2=1))
    bed = placed(fleet)
    bed.edit("m1", DB, spec={**bed.objects["m1"][DB].body["spec"], "replicas": 5})
    bed.edit("m2", DB, spec={**bed.objects["m2"][DB].body["spec"], "replicas": 1})
    assert of_set(bed.plan(fleet).plan) == [("update", "m1", None), ("update", "m2", None)]
