"""What becomes of copies that are no longer wanted, in whole rounds. Source: docs/concepts/deletion.md."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.fleet import Fleet
from reconciler.model.plan import Action, Change
from reconciler.model.refs import Identity
from tests.unit.worlds import TestBed, config_map, deployment, fleet_of, policy

NAMES = ("a", "b", "c", "d")
"""One more than may go unconfirmed where little is ours."""


def changes(bed: TestBed, fleet: Fleet, action: Action) -> list[Change]:
    found = bed.plan(fleet).plan.changes
    return [change for change in found if change.action is action and change.identity.kind != "Namespace"]


def by_guard(held: list[Change]) -> list[bool]:
    return [(change.held or "").startswith("guard: ") for change in held]


@pytest.mark.parametrize(("keep", "action"), [(True, Action.RELEASE), (False, Action.DELETE)])
def test_guards_count_releases_as_they_count_deletions(keep: bool, action: Action) -> None:
    bed, rule = TestBed(), policy("ConfigMap", "m1", preserveResourcesOnDeletion=keep)
    bed.run(fleet_of(*map(config_map, NAMES), rule))
    assert by_guard(changes(bed, fleet_of(rule), action)) == [True] * 4
    assert by_guard(changes(bed, fleet_of(config_map("d"), rule), action)) == [False] * 3


def test_a_move_counts_with_the_copy_that_it_deletes() -> None:
    bed = TestBed()
    bed.run(fleet_of(*map(deployment, NAMES), policy("Deployment", "m1")))
    moved = fleet_of(*map(deployment, NAMES), policy("Deployment", "m2"))
    bed.run(moved)
    for name in NAMES:
        bed.healthy("m2", Identity("apps", "Deployment", "demo", name))
    deletions = changes(bed, moved, Action.DELETE)
    assert [change.cluster for change in deletions] == ["m1"] * 4
    assert by_guard(deletions) == [True] * 4


def by_label(api: str, *, keep: bool, **labels: dict[str, str]) -> Fleet:
    """A workload that goes where the label `tier: web` is; `labels`: those of each cluster."""
    clusters = [
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name, "labels": found}}
        for name, found in labels.items()
    ]
    affinity: dict[str, Any] = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "web"}}}}
    rule = policy("Deployment", api=api, placement=affinity, preserveResourcesOnDeletion=keep)
    return fleet_of(*clusters, deployment(), rule, clusters=())


ACK, KARMADA = "policy.one.alibabacloud.com", "policy.karmada.io"


@pytest.mark.parametrize(
    ("api", "keep", "action", "held"),
    [
        (ACK, True, Action.DELETE, "waits for m2 healthy"),
        (ACK, False, Action.DELETE, "waits for m2 healthy"),
        (KARMADA, True, Action.RELEASE, None),
        (KARMADA, False, Action.DELETE, "waits for m2 healthy"),
    ],
)
def test_a_cluster_that_loses_its_label_is_left_as_by_an_edit(
    api: str, keep: bool, action: Action, held: str | None
) -> None:
    bed = TestBed("m1", "m2")
    bed.run(by_label(api, keep=keep, m1={"tier": "web"}, m2={}))
    moved = by_label(api, keep=keep, m1={}, m2={"tier": "web"})
    assert [(change.cluster, change.held) for change in changes(bed, moved, action)] == [("m1", held)]
    assert [change.cluster for change in changes(bed, moved, Action.CREATE)] == ["m2"]
