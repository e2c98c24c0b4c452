"""Patches of the ownership record, as values; the real API server judges them in tests/apiserver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.ownership import (
    FLEET_LABEL,
    OWNER_ANNOTATION,
    adopted,
    adoption_operations,
    fields_of,
    release_operations,
    takeover_operations,
)
from reconciler.ownership.managed_fields import managers_of, paths_of
from tests.unit.ownership_notation import US, managed

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def live(owners: dict[str, list[str]], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "7", "managedFields": managed(owners), **metadata},
        "spec": {"replicas": 2, "paused": True, "list": ["a", "b", "c"], "ports": [{"port": 1}, {"port": 2}]},
    }


def owned_after(body: dict[str, Any], operations: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The object with the managedFields that the patch writes."""
    (fields,) = (o["value"] for o in operations if o["path"] == "/metadata/managedFields")
    return {**body, "metadata": {**body["metadata"], "managedFields": fields}}


def test_every_patch_begins_with_the_version_that_was_read() -> None:
    body = live({"us": ["spec.paused"], "helm Update": ["spec.replicas"]}, labels={FLEET_LABEL: "test"})
    for operations in (
        adoption_operations(body, US),
        takeover_operations(body, US, ["spec.replicas"]),
        release_operations(body, US),
    ):
        assert operations[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}
        assert len(operations) > 1


def test_adoption_joins_what_predecessors_own_with_what_is_ours() -> None:
    owners = {"us": ["spec.paused"], "helm Update": ["spec.replicas"], "kubectl-edit Update": ["spec.list"]}
    after = owned_after(live(owners), adoption_operations(live(owners), US))
    assert set(paths_of(fields_of(after, US))) == {("spec", "paused"), ("spec", "replicas")}
    assert managers_of(after, ("spec",)) == {US, "kubectl-edit"}
    assert adopted(live(owners), US) == after


@pytest.mark.parametrize(
    ("annotations", "taken"),
    [({}, False), ({"projectsveltos.io/owner-kind": "Profile"}, True), ({"config.k8s.io/owning-inventory": "i"}, True),
     ({"argocd.argoproj.io/tracking-id": "x"}, False)],
)  # fmt: skip
def test_a_manager_that_many_programs_borrow_is_a_tool_s_where_its_mark_is(
    annotations: dict[str, str], taken: bool
) -> None:
    body = live({"application/apply-patch Apply": ["spec.replicas"]}, annotations=annotations)
    assert bool(adoption_operations(body, US)) is taken
    assert (adopted(body, US) is not body) is taken
    assert adoption_operations(body, US, ["earlier"]) == (), "of a fleet that was renamed only its own count"


def test_adoption_of_client_side_apply_takes_what_was_declared_and_forgets_its_defaults() -> None:
    declared = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
    annotations = {LAST_APPLIED: json.dumps(declared)}
    path = f"metadata.annotations['{LAST_APPLIED}']"
    body = live({"kubectl-client-side-apply Update": ["spec.replicas", "spec.paused", path]}, annotations=annotations)
    after = adopted(body, US)
    assert set(paths_of(fields_of(after, US))) == {("spec", "replicas"), ("metadata", "annotations", LAST_APPLIED)}
    assert managers_of(after, ("spec", "paused")) == frozenset()


def test_adoption_leaves_status_writers_and_strangers_alone() -> None:
    body = live({"helm Update status": ["status.x"], "some-operator Update": ["spec.replicas"]})
    assert adoption_operations(body, US) == ()
    assert adopted(body, US) is body


def test_taking_over_moves_updates_and_leaves_applies() -> None:
    body = live(
        {"a Update": ["spec.replicas", "spec.paused"], "b Apply": ["spec.replicas"], "c Update": ["spec.replicas"]}
    )
    after = owned_after(body, takeover_operations(body, US, ["spec.replicas"]))
    assert managers_of(after, ("spec", "replicas")) == {US, "b"}
    assert managers_of(after, ("spec", "paused")) == {"a"}
    assert "c" not in managers_of(after, ())


def test_takes_over_what_nobody_owns() -> None:
    body = live({})
    after = owned_after(body, takeover_operations(body, US, ["spec.ports[port=2]", "spec.replicas"]))
    assert managers_of(after, ("spec", "replicas")) == {US}
    assert managers_of(after, ("spec", "ports")) == {US}


def test_has_nothing_to_take_over_where_nothing_is() -> None:
    assert takeover_operations(live({}), US, ["spec.gone", "not a path"]) == ()


def test_release_takes_marks_and_manager_off() -> None:
    marks: dict[str, Any] = {"labels": {FLEET_LABEL: "test", "x": "y"}, "annotations": {OWNER_ANNOTATION: "{}"}}
    body = live({"us": ["spec.replicas"], f"{US} Update": ["spec.paused"], "b Apply": ["spec.list"]}, **marks)
    operations = release_operations(body, US)
    assert [o["path"] for o in operations if o["op"] == "remove"] == [
        "/metadata/labels/fleet.reconciler~1fleet",
        "/metadata/annotations/fleet.reconciler~1owner",
    ]
    assert managers_of(owned_after(body, operations), ()) == {"b"}


def test_release_of_an_object_that_is_ours_alone_says_that_nobody_owns_it() -> None:
    operations = release_operations(live({"us": ["spec.replicas"]}), US)
    assert operations[-1]["value"] == [{}], "an empty list would count as not given"
    assert release_operations(live({"b Apply": ["spec.list"]}), US) == ()
