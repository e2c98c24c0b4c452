"""The answer of a dry run."""

from __future__ import annotations

from typing import Any

from reconciler.api.refs import GVK
from reconciler.diff import dry_run_changes, is_write_needed
from reconciler.documents import builtin_schema
from tests.unit.ownership_notation import US, managed

SCHEMA = builtin_schema(GVK("apps", "v1", "Deployment"))


def deployment(spec: dict[str, Any], **owners: list[str]) -> dict[str, Any]:
    entries = managed({words.replace("_", " "): paths for words, paths in owners.items()})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "1", "managedFields": entries},
        "spec": spec,
        "status": {"replicas": len(spec)},
    }


def read(live: dict[str, Any], result: dict[str, Any]) -> list[tuple[str, str]]:
    changes = dry_run_changes(live, result, manager=US, schema=SCHEMA)
    return [(change.path, str(change.cause)) for change in changes]


def test_labels_what_is_ours_and_what_came_along() -> None:
    live = deployment({"replicas": 1, "paused": True}, us=["spec.replicas", "spec.paused"])
    result = deployment({"replicas": 2, "minReadySeconds": 3}, us=["spec.replicas"])
    assert read(live, result) == [
        ("spec.minReadySeconds", "side-effect"),
        ("spec.paused", "removed"),
        ("spec.replicas", "declared"),
    ]


def test_a_field_that_falls_back_to_its_default_is_removed() -> None:
    live = deployment({"replicas": 3}, us=["spec.replicas"])
    result = deployment({"replicas": 1}, us=[])
    changes = dry_run_changes(live, result, manager=US, schema=SCHEMA)
    assert [(str(c.cause), c.before, c.after) for c in changes] == [("removed", 3, 1)]


def test_names_the_owner_of_a_field_before() -> None:
    live = deployment({"replicas": 5}, kubectl_Update=["spec.replicas"])
    result = deployment({"replicas": 2}, us=["spec.replicas"])
    changes = dry_run_changes(live, result, manager=US, schema=SCHEMA)
    assert [(str(c.cause), c.owner.manager if c.owner else "") for c in changes] == [("declared", "kubectl")]


def test_side_effects_alone_need_no_write() -> None:
    live, result = deployment({"replicas": 1}), deployment({"replicas": 1, "paused": True})
    changes = dry_run_changes(live, result, manager=US, schema=SCHEMA)
    assert changes
    assert not is_write_needed(changes)
    assert dry_run_changes(live, live, manager=US, schema=SCHEMA) == ()


def test_what_lies_inside_an_atomic_value_of_ours_is_ours() -> None:
    one = {"template": {"spec": {"tolerations": [{"key": "a"}]}}}
    other = {"template": {"spec": {"tolerations": [{"key": "b"}]}}}
    path = "spec.template.spec.tolerations"
    assert read(deployment(one, us=[path]), deployment(other, us=[path])) == [(path, "declared")]
