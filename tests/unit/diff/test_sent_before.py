"""Fields that only an earlier version sent, or only this one. Source: design#fields-of-the-cluster."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.api.content import JsonObject, with_value, without
from reconciler.api.plan import Change
from reconciler.api.refs import Identity
from tests.fakes.worlds import TestBed, fleet_of, job, policy

CLAIM: dict[str, Any] = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "app", "namespace": "demo"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}  # fmt: skip
BOUND = {"pv.kubernetes.io/bound-by-controller": "yes"}


def recorded(bed: TestBed, identity: Identity, body: JsonObject, **row: Any) -> None:
    """The journal holds what an earlier version sent."""
    known = bed.ledger["m1"][identity]
    bed.ledger["m1"][identity] = replace(known, recorded=body, manifest_digest="earlier", **row)


def changes(bed: TestBed, *documents: dict[str, Any]) -> tuple[Change, ...]:
    return bed.plan(fleet_of(*documents, clusters=("m1",))).plan.changes


def test_a_field_that_is_left_to_the_cluster_now_is_not_taken_from_it() -> None:
    bed, identity, rule = TestBed("m1"), Identity("", "PersistentVolumeClaim", "demo", "app"), policy(
        "PersistentVolumeClaim", "m1"
    )  # fmt: skip
    bed.run(fleet_of(CLAIM, rule, clusters=("m1",)))
    row = bed.ledger["m1"][identity]
    assert row.recorded is not None
    sent = with_value(with_value(row.recorded, ("spec", "volumeName"), "v"), ("metadata", "annotations"), BOUND)
    recorded(bed, identity, sent)
    live = bed.objects["m1"][identity].body
    theirs = {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
              "fieldsV1": {"f:spec": {"f:volumeName": {}}}}  # fmt: skip
    managed = [*live["metadata"]["managedFields"], theirs]
    bed.edit(
        "m1",
        identity,
        metadata={**live["metadata"], "managedFields": managed},
        spec={**live["spec"], "volumeName": "v"},
    )
    assert changes(bed, CLAIM, rule) == ()


def test_a_job_that_ended_and_is_gone_does_not_run_again_for_labels_that_are_sent_now() -> None:
    bed, identity, rule = TestBed("m1"), Identity("batch", "Job", "demo", "app"), policy("Job", "m1")
    template = job()
    template["spec"]["template"]["metadata"] = {"labels": {"app": "app"}}
    bed.run(fleet_of(template, rule, clusters=("m1",)))
    row = bed.ledger["m1"][identity]
    assert row.recorded is not None
    assert row.recorded["metadata"]["labels"]["app"] == "app"
    recorded(bed, identity, without(row.recorded, ("metadata", "labels", "app")), finished=True)
    del bed.objects["m1"][identity]
    assert changes(bed, template, rule) == ()
    template["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    assert [change.action for change in changes(bed, template, rule)] == ["create"]
