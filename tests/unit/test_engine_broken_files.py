"""What goes on while a file is broken, in whole rounds. Source: design#broken-input; design#promise-2."""

from __future__ import annotations

from typing import Any

from reconciler.model.plan import Action, Change
from reconciler.model.refs import Identity
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "app")
BROKEN_POLICY = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: frozen, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: frozen}]
  placement: {}
  nonsense: 1
"""


def rule(name: str, *clusters: str) -> dict[str, Any]:
    found = policy("ConfigMap", *clusters, name=name, preserveResourcesOnDeletion=False)
    found["spec"]["resourceSelectors"][0]["name"] = name
    return found


def told(changes: tuple[Change, ...]) -> list[tuple[str, str, str, str | None]]:
    return [(c.identity.name, c.cluster, str(c.action), c.held) for c in changes if c.identity.kind != "Namespace"]


def test_what_a_broken_policy_might_say_is_neither_written_nor_claimed_anew_and_all_else_goes_on() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map("frozen", a="1"), config_map("free", a="1"), rule("frozen", "m1"), rule("free", "m1")))
    edited = (config_map("frozen", a="2"), config_map("free", a="2"))
    claims = rule("other", "m2")
    claims["spec"]["resourceSelectors"][0]["name"] = "frozen"
    plan = bed.plan(fleet_of(*edited, rule("free", "m1", "m2"), claims, broken=BROKEN_POLICY)).plan
    assert told(plan.changes) == [("free", "m1", "update", None), ("free", "m2", "create", None)]


def test_while_a_file_is_broken_nothing_is_taken_for_deleted_that_is_merely_absent() -> None:
    bed = TestBed()
    bed.run(fleet_of(config_map("gone"), config_map("free"), rule("gone", "m1"), rule("free", "m1")))
    fleet = fleet_of(config_map("free", a="2"), rule("gone", "m1"), rule("free", "m1"), broken=BROKEN_POLICY)
    assert told(bed.plan(fleet).plan.changes) == [("free", "m1", "update", None)]
    bed.run(fleet)
    mended = fleet_of(config_map("free", a="2"), rule("gone", "m1"), rule("free", "m1"))
    assert told(bed.plan(mended).plan.changes) == [("gone", "m1", "delete", None)]


def test_while_a_file_is_broken_a_move_of_something_else_is_finished() -> None:
    bed = TestBed()
    bed.run(fleet_of(deployment(), policy("Deployment", "m1")))
    moved = fleet_of(deployment(), policy("Deployment", "m2"), broken=BROKEN_POLICY)
    bed.run(moved)
    bed.healthy("m2", WEB)
    (change,) = (c for c in bed.run(moved).plan.changes if c.action is Action.DELETE)
    assert (change.identity, change.cluster, change.held) == (WEB, "m1", None)
