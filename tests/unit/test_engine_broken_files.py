"""Work that goes on while a file is broken, in whole rounds. Source: design#broken-input; design#promise-2."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FrozenReach
from reconciler.api.plan import Action, Change
from reconciler.api.problem import Source
from reconciler.api.refs import Identity
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


def test_a_new_unreadable_file_holds_back_new_objects_and_neither_edits_nor_healing() -> None:
    def store(value: str, *more: dict[str, Any], is_new: bool = False) -> Fleet:
        fleet = fleet_of(config_map("app", a=value), rule("app", "m1"), *more)
        reach = FrozenReach(source=Source("new.yaml"), everything=True, is_new=True)
        return replace(fleet, frozen=(reach,), is_complete=False) if is_new else fleet

    bed = TestBed()
    bed.run(store("1", config_map("gone", a="1"), rule("gone", "m1")))
    later = store("2", config_map("more", a="1"), rule("more", "m1"), is_new=True)
    round_ = bed.run(later)
    assert told(round_.plan.changes) == [("app", "m1", "update", None)]
    assert {identity.name for identity in round_.schedule.frozen} == {"more"}
    bed.edit("m1", Identity("", "ConfigMap", "demo", "app"), data={"a": "of a hand"})
    assert told(bed.run(later).plan.changes) == [("app", "m1", "update", None)]
