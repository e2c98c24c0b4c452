"""Copies that count as taking over, in whole rounds. Source: docs/concepts/moves.md."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.fleet import Fleet
from reconciler.api.refs import GVK, Identity
from reconciler.fleet_snapshot import FleetSnapshot
from tests.fakes import worlds
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
THING = Identity("example.com", "Thing", "demo", "app")
BEFORE = fleet_of(deployment(), policy("Deployment", "m1"))
AFTER = fleet_of(deployment(), policy("Deployment", "m2"))
WAITS = [("m1", "waits for m2 healthy")]
GOES = [("m1", None)]


def leaving(bed: TestBed, kind: str = "Deployment") -> list[tuple[str, str | None]]:
    """Return where copies are to go, and why they do not yet."""
    return held_in(bed, AFTER, kind)


def held_in(bed: TestBed, fleet: Fleet, kind: str) -> list[tuple[str, str | None]]:
    """Return where copies of a kind are to go, and for what they wait, without what is unknown of that."""
    due = [c for c in bed.plan(fleet).plan.changes if c.identity.kind == kind and c.action == "delete"]
    return [(c.cluster, c.held and c.held.partition(";")[0]) for c in due]


def moved() -> TestBed:
    """A workload that serves in m1, and its new copy in m2."""
    bed = TestBed("m1", "m2")
    bed.run(BEFORE)
    bed.healthy("m1", WEB)
    bed.run(BEFORE)
    bed.run(AFTER)
    assert leaving(bed) == WAITS
    return bed


@pytest.mark.parametrize(
    ("lacks", "expected"),
    [
        ({}, GOES),
        ({"observedGeneration": 0}, WAITS),
        ({"availableReplicas": 1}, WAITS),
        ({"updatedReplicas": 1}, WAITS),
        ({"replicas": 3}, WAITS),
    ],
    ids=["all of it", "not seen by its controller", "not all available", "not all updated", "old pods are there"],
)
def test_a_copy_takes_over_when_all_of_its_replicas_are_available(
    lacks: dict[str, int], expected: list[tuple[str, str | None]]
) -> None:
    bed = moved()
    bed.healthy("m2", WEB)
    status = {**bed.objects["m2"][WEB].body["status"], **lacks}
    bed.edit("m2", WEB, status=status)
    assert leaving(bed) == expected


def test_a_copy_that_is_not_as_it_is_wanted_takes_nothing_over() -> None:
    bed = moved()
    bed.healthy("m2", WEB)
    spec = bed.objects["m2"][WEB].body["spec"]
    bed.edit("m2", WEB, spec={**spec, "replicas": 1})
    assert leaving(bed) == WAITS


def test_what_runs_no_pods_stays_with_a_workload_of_its_namespace_that_still_serves() -> None:
    def placed(cluster: str) -> Fleet:
        rules = (policy("Deployment", cluster), policy("ConfigMap", cluster, name="data"))
        return fleet_of(deployment(), config_map(), *rules)

    bed, after = TestBed("m1", "m2"), placed("m2")
    bed.run(placed("m1"))
    bed.healthy("m1", WEB)
    bed.run(placed("m1"))
    bed.run(after)
    assert held_in(bed, after, "ConfigMap") == [("m1", "waits until Deployment demo/app has left")]
    bed.healthy("m2", WEB)
    assert held_in(bed, after, "ConfigMap") == held_in(bed, after, "Deployment") == GOES


def test_a_copy_in_a_cluster_that_does_not_answer_takes_nothing_over() -> None:
    bed = moved()
    bed.healthy("m2", WEB)
    bed.down = {"m2"}
    assert leaving(bed) == WAITS


def test_a_creation_whose_round_was_cut_off_takes_nothing_over() -> None:
    """Killed between the creation and the end of the round; then the new cluster does not answer."""
    bed = TestBed("m1", "m2")
    bed.run(BEFORE)
    bed.healthy("m1", WEB)
    bed.run(BEFORE)
    placed = bed.observations
    bed.run(AFTER)
    bed.observations, bed.down = placed, {"m2"}
    assert leaving(bed) == WAITS


def test_a_rebuilt_journal_asks_every_copy() -> None:
    bed = TestBed("m1", "m2", "m3")
    both = fleet_of(deployment(), policy("Deployment", "m1", "m2"))
    bed.run(both)
    for cluster in ("m1", "m2"):
        bed.healthy(cluster, WEB)
    bed.run(both)
    one = bed.objects["m2"][WEB].body
    bed.edit("m2", WEB, status={**one["status"], "availableReplicas": 0})
    bed.ledger["m2"].pop(WEB)
    assert leaving(bed) == WAITS


FREE = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": FREE}}]},
}  # fmt: skip


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members serve a kind that nobody described."""
    monkeypatch.setattr(worlds, "SERVED", {**worlds.SERVED, GVK("example.com", "v1", "Thing"): True})


@pytest.mark.usefixtures("served")
def test_a_custom_resource_without_a_status_takes_nothing_over_from_one_that_reports_one() -> None:
    def store(cluster: str) -> Any:
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "app", "namespace": "demo"},
                 "spec": {"size": 1}}  # fmt: skip
        rule = policy("Thing", cluster)
        rule["spec"]["resourceSelectors"][0]["apiVersion"] = "example.com/v1"
        return fleet_of(DEFINITION, thing, rule)

    bed = TestBed("m1", "m2")
    bed.run(store("m1"))
    bed.run(store("m2"))
    assert held_in(bed, store("m2"), "Thing") == GOES, "neither reports anything"
    bed.edit("m1", THING, status={"phase": "Running"})
    assert held_in(bed, store("m2"), "Thing") == WAITS
    bed.edit("m2", THING, status={"phase": "Running"})
    assert held_in(bed, store("m2"), "Thing") == GOES


class Autoscaled(TestBed):
    """A bed where an autoscaler that the store does not know scales the workload in m1."""

    def world(self, fleet: Fleet) -> FleetSnapshot:
        world = super().world(fleet)
        scaled = world.members["m1"]
        assert isinstance(scaled, Read)
        return replace(world, members={**world.members, "m1": replace(scaled, autoscaled=frozenset({WEB}))})


def divided(**weights: int) -> dict[str, Any]:
    entries = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                  "weightPreference": {"staticWeightList": entries}}  # fmt: skip
    return policy("Deployment", placement={
        "clusterAffinity": {"clusterNames": list(weights)}, "replicaScheduling": scheduling})  # fmt: skip


def test_a_share_that_its_cluster_scales_serves_what_it_is_to_keep() -> None:
    bed, clusters = Autoscaled(), ("m1", "m2", "m3")
    base = fleet_of(deployment(replicas=9), divided(m1=1, m2=1, m3=1))
    head = fleet_of(deployment(replicas=9), divided(m1=1, m2=8))
    bed.run(base)
    bed.edit("m1", WEB, spec={**bed.objects["m1"][WEB].body["spec"], "replicas": 5})
    for cluster in clusters:
        bed.healthy(cluster, WEB)
    bed.run(base)
    bed.run(head)
    bed.healthy("m2", WEB)
    bed.run(head)
    assert WEB not in bed.objects["m3"]
    assert bed.objects["m1"][WEB].body["spec"]["replicas"] == 5
