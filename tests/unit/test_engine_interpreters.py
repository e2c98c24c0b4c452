"""Plans that know different kinds, in one process: each goes by the interpreters that it was given."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.content import JsonObject, dig, with_value
from reconciler.api.demand import Demand, DependencyRef
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS, SPEC_TEMPLATE, Interpreter, Registry
from reconciler.planner import compare_revisions, plan_round, render_schedule
from reconciler.render import changed_identities
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet
from tests.fakes.raising import registry_with
from tests.fakes.worlds import NOW, config_map, fleet_of

MEMBERS = ("spec", "members")
RING = Identity("example.com", "Ring", "demo", "app")
CONFIG = Identity("", "ConfigMap", "demo", "app")


class Ring(Interpreter):
    replicas_path = MEMBERS

    def demand(self, body: JsonObject) -> Demand:
        return Demand(replicas=dig(body, *MEMBERS))

    def with_replicas(self, body: JsonObject, replicas: int) -> JsonObject:
        return with_value(body, MEMBERS, replicas)

    def dependencies(self, body: JsonObject) -> tuple[DependencyRef, ...]:
        return SPEC_TEMPLATE.dependencies(body)


WITH_PLUGIN = registry_with(("plugin ring", Ring((RING.group, RING.kind))))


def ring(image: str = "ring:1") -> dict[str, Any]:
    container = {"name": "main", "image": image, "envFrom": [{"configMapRef": {"name": CONFIG.name}}]}
    return {"apiVersion": "example.com/v1", "kind": "Ring", "metadata": {"name": RING.name, "namespace": "demo"},
            "spec": {"members": 3, "template": {"spec": {"containers": [container]}}}}  # fmt: skip


def store(image: str = "ring:1") -> Fleet:
    """A Ring that is divided between two clusters, with what it refers to."""
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in (("m1", 2), ("m2", 1))]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                  "weightPreference": {"staticWeightList": weights}}  # fmt: skip
    policy = {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "PropagationPolicy",
              "metadata": {"name": "app", "namespace": "demo"},
              "spec": {"resourceSelectors": [{"apiVersion": "example.com/v1", "kind": "Ring"}], "propagateDeps": True,
                       "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]},
                                     "replicaScheduling": scheduling}}}  # fmt: skip
    return fleet_of(ring(image), config_map(), policy)


def decided(fleet: Fleet, interpreters: Registry, tables: ScheduleTables | None = None) -> Schedule:
    return schedule_fleet(fleet, Observations(), NOW, interpreters=interpreters, tables=tables)


def sent(schedule: Schedule) -> dict[str, Any]:
    """The members of the Ring as they are sent to each cluster."""
    manifests = render_schedule(schedule).manifests
    return {found.cluster: dig(found.body, *MEMBERS) for found in manifests if found.identity == RING}


def steady(plan_of: Registry) -> set[tuple[str, ...]]:
    """Return where replicas are that an update of the Ring leaves as they are."""
    plan = compare_revisions(store(), store("ring:2"), Observations(), NOW, interpreters=plan_of)
    return {change.steady_path for change in plan.changes if change.identity == RING}


def test_two_plans_in_one_process_know_different_kinds() -> None:
    fleet = store()
    for _ in range(2):
        world = FleetSnapshot(fleet=fleet, interpreters=WITH_PLUGIN, now=NOW)
        known = plan_round(world).schedule
        plain = plan_round(FleetSnapshot(fleet=fleet, interpreters=BUILT_IN_KINDS, now=NOW)).schedule
        assert (known.interpreters, plain.interpreters) == (WITH_PLUGIN, BUILT_IN_KINDS)
        assert sent(known) == {"m1": 2, "m2": 1}
        assert CONFIG in known.bindings
        assert sent(plain) == {"m1": 3, "m2": 3}
        assert CONFIG not in plain.bindings


def test_a_decision_does_not_depend_on_what_others_have_known_before_it() -> None:
    shared = store()
    for interpreters in (BUILT_IN_KINDS, WITH_PLUGIN, BUILT_IN_KINDS):
        assert decided(shared, interpreters) == decided(store(), interpreters)


@pytest.mark.parametrize("turned", [False, True])
def test_tables_of_other_interpreters_are_not_built_upon(turned: bool) -> None:
    before, after = (WITH_PLUGIN, BUILT_IN_KINDS) if turned else (BUILT_IN_KINDS, WITH_PLUGIN)
    fleet, tables = store(), ScheduleTables()
    first = decided(fleet, before, tables)
    again = decided(fleet, after, tables)
    assert again == decided(fleet, after)
    assert tables.changed is None
    assert changed_identities(first, again, tables.changed) >= {RING}


def test_what_other_interpreters_render_is_settled_anew_though_it_is_placed_alike() -> None:
    kept = registry_with(("plugin ring", Interpreter((RING.group, RING.kind))))
    first, again = decided(store(), BUILT_IN_KINDS), decided(store(), kept)
    assert first.bindings == again.bindings
    assert RING in changed_identities(first, again)
    assert not changed_identities(first, decided(store(), BUILT_IN_KINDS))


def test_a_comparison_of_revisions_finds_replicas_where_the_plugin_says_they_are() -> None:
    assert steady(WITH_PLUGIN) == {MEMBERS}
    assert steady(BUILT_IN_KINDS) == {()}
    assert steady(WITH_PLUGIN) == {MEMBERS}
