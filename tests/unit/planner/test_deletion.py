from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.plan import Action
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import DeletionAction, compare_revisions
from reconciler.planner.deletion import LossCause, fate_of
from tests.fakes.worlds import NOW, TestBed, config_map, deployment, fleet_of, policy
from tests.yaml_text import load_yaml

TABLE = load_yaml((Path(__file__).parents[2] / "cases/deletion/table.yaml").read_text())["rows"]
CASES = [
    pytest.param(LossCause[row["loss"]], column, DeletionAction(row[column]), id=f"{row['loss']}-{column}")
    for row in TABLE
    for column in ("ack_keep", "ack_delete", "karmada_keep", "karmada_delete")
]


@pytest.mark.parametrize(("loss", "column", "fate"), CASES)
def test_follows_the_table_of_deletion_causes(loss: LossCause, column: str, fate: DeletionAction) -> None:
    assert fate_of(loss, keep=column.endswith("keep"), is_ack=column.startswith("ack")) is fate


def test_table_names_every_cause() -> None:
    assert {row["loss"] for row in TABLE} == {loss.name for loss in LossCause}


KEEPS: dict[str, Any] = {"preserveResourcesOnDeletion": True}
DELETES: dict[str, Any] = {"preserveResourcesOnDeletion": False}
OLDER = "one.alibabacloud.com"


def cluster_policy(**spec: Any) -> dict[str, Any]:
    document = policy("ConfigMap", "m1", **spec)
    return {**document, "kind": "ClusterPropagationPolicy", "metadata": {"name": "app"}}


def with_labels(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "labels": {"tier": "web"}}}


def by_label(document: dict[str, Any]) -> dict[str, Any]:
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"tier": "web"}}}
    return {**document, "spec": {**document["spec"], "resourceSelectors": [selector]}}


def selects_other(document: dict[str, Any]) -> dict[str, Any]:
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other"}
    return {**document, "spec": {**document["spec"], "resourceSelectors": [selector]}}


APP = config_map()
SAME_COMMIT = {
    "the policy itself": ([APP, policy("ConfigMap", "m1", **DELETES)], [policy("ConfigMap", "m1", **KEEPS)]),
    "the policy under another name": (
        [APP, policy("ConfigMap", "m1", **DELETES)],
        [policy("ConfigMap", "m1", name="renamed", **KEEPS)],
    ),
    "another one that would claim it": (
        [APP, policy("ConfigMap", "m1", **DELETES)],
        [cluster_policy(**KEEPS)],
    ),
    "another one that would claim it by label": (
        [with_labels(APP), policy("ConfigMap", "m1", **DELETES)],
        [by_label(policy("ConfigMap", "m1", name="by-label", **KEEPS))],
    ),
    "a cluster policy": ([APP, cluster_policy(**DELETES)], [cluster_policy(**KEEPS)]),
    "prune of the older API": (
        [APP, policy("ConfigMap", "m1", api=OLDER, prune=True)],
        [policy("ConfigMap", "m1", api=OLDER, prune=False)],
    ),
    "a policy of Karmada": (
        [APP, policy("ConfigMap", "m1", api="policy.karmada.io", **DELETES)],
        [policy("ConfigMap", "m1", api="policy.karmada.io", **KEEPS)],
    ),
    "one that keeps less counts not yet": (
        [APP, policy("ConfigMap", "m1", **KEEPS)],
        [policy("ConfigMap", "m1", **DELETES)],
    ),
    "a policy that does not select it any more": (
        [APP, policy("ConfigMap", "m1", **DELETES)],
        [APP, selects_other(policy("ConfigMap", "m1", **KEEPS))],
    ),
}


@pytest.mark.parametrize("case", SAME_COMMIT)
def test_keep_that_comes_with_the_commit_that_removes_counts(case: str) -> None:
    before, after = SAME_COMMIT[case]
    bed = TestBed()
    base, head = fleet_of(*before), fleet_of(*after)
    bed.run(base)
    live = bed.plan(head).plan.changes
    offline = compare_revisions(base, head, Observations(), NOW, interpreters=BUILT_IN_KINDS).changes
    expected = [(Action.RELEASE, "app")]
    assert [(c.action, c.identity.name) for c in live if c.identity.kind == "ConfigMap"] == expected
    assert [(c.action, c.identity.name) for c in offline if c.identity.kind == "ConfigMap"] == expected


def test_keep_counts_for_what_followed_a_workload_that_leaves_with_it() -> None:
    pod = {"containers": [{"name": "main", "image": "nginx:1", "envFrom": [{"configMapRef": {"name": "app"}}]}]}
    web = deployment("web")
    web["spec"]["template"]["spec"] = pod
    bed = TestBed()
    bed.run(fleet_of(web, APP, policy("Deployment", "m1", propagateDeps=True, **DELETES)))
    for rest in ([], [APP]):
        plan = bed.plan(fleet_of(*rest, policy("Deployment", "m1", propagateDeps=True, **KEEPS))).plan
        kinds = {(c.action, c.identity.kind) for c in plan.changes if c.identity.kind != "Namespace"}
        assert kinds == {(Action.RELEASE, "Deployment"), (Action.RELEASE, "ConfigMap")}


def test_keep_of_a_policy_that_another_one_outranks_does_not_count() -> None:
    bed = TestBed()
    bed.run(fleet_of(APP, policy("ConfigMap", "m1", **DELETES), cluster_policy(**KEEPS)))
    plan = bed.plan(fleet_of(policy("ConfigMap", "m1", **DELETES), cluster_policy(**KEEPS))).plan
    assert [c.action for c in plan.changes if c.identity.kind == "ConfigMap"] == [Action.DELETE]


def test_suspended_policy_holds_the_deletion_of_a_template_that_left_it() -> None:
    bed = TestBed()
    bed.run(fleet_of(APP, policy("ConfigMap", "m1", **DELETES)))
    left = fleet_of(policy("ConfigMap", "m1", suspension={"dispatching": True}, **DELETES))
    found = [(c.action, c.held) for c in bed.plan(left).plan.changes if c.identity.kind == "ConfigMap"]
    assert found == [(Action.DELETE, "dispatching is suspended by PropagationPolicy demo/app")]
