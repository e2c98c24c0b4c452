"""A fault of our own, or of an installed interpreter, concerns the object that brings it out, in its cluster alone.

Source: design#promise-7.
"""

from __future__ import annotations

from importlib import import_module

import pytest

from reconciler.api.content import JsonObject
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action
from reconciler.api.refs import Identity
from reconciler.diff import Comparer, FleetCopies
from reconciler.planner import Round
from reconciler.render import Manifests
from tests.fakes.raising import InterpreterFault, raising, registry_with
from tests.fakes.worlds import TestBed, config_map, deployment, fleet_of, policy

APP = Identity("apps", "Deployment", "demo", "app")
POLICIES = (policy("Deployment", "m1", "m2"), policy("ConfigMap", "m1", "m2", name="settings"))


@pytest.fixture
def bed() -> TestBed:
    """Two clusters with the first revision, whose Deployments are `bad` in m1 when they are judged."""
    bed = TestBed("m1", "m2")
    bed.run(store("nginx:1"))
    bed.run(store("nginx:1"))
    bed.edit("m1", APP, status={"bad": True})
    faulty = raising("apps", "Deployment", is_bad)
    bed.interpreters = registry_with(("faulty", faulty))
    return bed


def is_bad(live: JsonObject) -> bool:
    return bool((live.get("status") or {}).get("bad"))


def store(image: str, value: str = "1") -> Fleet:
    return fleet_of(deployment(image=image), config_map("settings", value=value), *POLICIES, clusters=("m1", "m2"))


def changes(planned: Round) -> set[tuple[Action, str, str]]:
    return {(change.action, change.cluster, change.identity.name) for change in planned.plan.changes}


def test_its_copies_elsewhere_and_the_other_objects_go_on(bed: TestBed) -> None:
    planned = bed.plan(store("nginx:1", value="2"))
    assert changes(planned) == {(Action.UPDATE, "m1", "settings"), (Action.UPDATE, "m2", "settings")}
    problem = next(problem for problem in planned.problems[APP] if problem.code == "internal-error")
    assert problem.cluster == "m1"
    assert "Deployment demo/app" in problem.message and "(InterpreterFault at " in problem.message
    assert "hunter2" not in problem.message, "a message of a fault may quote a value"
    assert not planned.plan.is_complete


def test_a_copy_that_cannot_be_judged_is_not_taken_away_before_others_serve(bed: TestBed) -> None:
    left = fleet_of(deployment(), config_map("settings", value="1"), policy("Deployment", "m2"), POLICIES[1],
                    clusters=("m1", "m2"))  # fmt: skip
    planned = bed.plan(left)
    assert not [change for change in planned.plan.changes if change.cluster == "m1" and not change.held]


def test_a_fault_that_no_single_copy_brings_out_leaves_the_object_as_it_is_everywhere(
    bed: TestBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("reconciler.planner.diff_all")
    whole = module._diff_placed

    def fail(manifests: Manifests, comparer: Comparer, identity: Identity, seen: FleetCopies) -> object:
        if identity == APP:
            raise InterpreterFault
        return whole(manifests, comparer, identity, seen)

    monkeypatch.setattr(module, "_diff_placed", fail)
    planned = bed.plan(store("nginx:2", value="2"))
    assert changes(planned) == {(Action.UPDATE, "m1", "settings"), (Action.UPDATE, "m2", "settings")}
    assert [(problem.code, problem.cluster) for problem in planned.problems[APP]] == [("internal-error", "")]
    assert not planned.plan.is_complete
