"""Dependencies, by the tables under tests/cases/dependencies: claimed templates in, bindings of what they need out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api.binding import Binding, TargetCluster
from reconciler.api.fleet import Fleet
from reconciler.api.policies import ApplicationFailover, ConflictResolution, Flavor, PropagationPolicy, Suspension
from reconciler.api.problem import Source
from reconciler.api.refs import Identity, PolicyRef
from reconciler.scheduler import LinkTables
from reconciler.scheduler.dependencies import DEPENDENCY
from tests.fakes.tables import dependencies_of
from tests.fleets import with_templates
from tests.rendering import Case, cases_of, name_of

ALL = cases_of("dependencies")
KNOWN = {
    "case", "source", "table", "objects", "claimed", "held", "complete", "expect", "reasons", "cluster_reasons",
    "needs", "settings", "problems",
}  # fmt: skip


def policy(given: Mapping[str, Any]) -> PropagationPolicy:
    return PropagationPolicy(
        ref=PolicyRef("PropagationPolicy", "demo", given.get("policy", "p")),
        flavor=Flavor.ACK,
        source=Source("policies.yaml", 1),
        keep=given.get("keep", True),
        propagate_deps=given.get("deps", True),
        conflict_resolution=ConflictResolution(given.get("conflict", "Abort")),
        suspension=Suspension(clusters=tuple(given.get("suspended", ()))),
        application_failover=ApplicationFailover(),
    )


def decide(case: Case) -> tuple[Fleet, LinkTables, dict[Identity, Binding]]:
    fleet = with_templates(Fleet(revision="test", is_complete=case.get("complete", True)), case["objects"])
    named = {str(identity): identity for identity in fleet.templates}
    policies = {named[name]: policy(given) for name, given in case["claimed"].items()}
    bindings = {
        named[name]: Binding(
            identity=named[name],
            policy=policies[named[name]].ref,
            targets=tuple(TargetCluster(cluster=cluster) for cluster in given["clusters"]),
        )
        for name, given in case["claimed"].items()
    }
    held = {named[name]: clusters for name, clusters in case.get("held", {}).items()}
    return fleet, dependencies_of(fleet, policies, bindings, held), bindings


def test_every_case_has_a_source_and_only_known_keys() -> None:
    assert all(case["source"] and not set(case) - KNOWN for case in ALL)


@pytest.mark.parametrize("case", ALL, ids=[name_of(case) for case in ALL])
def test_dependencies(case: Case) -> None:
    _, result, own = decide(case)
    followed = {str(identity): binding for identity, binding in result.bindings.rows.items() if binding.owners}
    assert {
        name: {
            "clusters": list(binding.clusters),
            "owners": [str(owner) for owner in binding.owners],
            "policy": str(binding.policy),
            "dependency": binding.is_dependency,
        }
        for name, binding in followed.items()
    } == case["expect"]
    assert {str(identity) for identity in result.bindings.rows} == {*case["claimed"], *case["expect"]}
    assert all(result.bindings.rows[identity] is own[identity] for identity in own if str(identity) not in followed)
    for name, expected in case.get("reasons", {}).items():
        assert [str(reason) for reason in followed[name].reasons] == expected
    for name, expected in case.get("cluster_reasons", {}).items():
        reasons = followed[name].cluster_reasons
        assert {cluster: reason.text for cluster, reason in reasons.items()} == expected
        assert {reason.rule for reason in reasons.values()} == {DEPENDENCY}
    if "needs" in case:
        assert {str(owner): sorted(map(str, needs)) for owner, needs in result.needs.rows.items()} == case["needs"]
    if "settings" in case:
        assert {
            str(identity): {"keep": inherited.keep, "conflict": inherited.conflict_resolution.value}
            for identity, inherited in result.policies.rows.items()
        } == case["settings"]
    found = [
        [str(problem.source), problem.code, problem.path]
        for problem in [one for found in result.problems.rows.values() for one in found]
    ]
    assert found == case.get("problems", [])


TWO_OWNERS = next(case for case in ALL if case["case"].startswith("a dependency of several owners"))


def test_a_dependency_neither_fails_over_by_itself_nor_brings_anything_along() -> None:
    _, result, _ = decide(TWO_OWNERS)
    (inherited,) = result.policies.rows.values()
    assert inherited.application_failover is None
    assert not inherited.propagate_deps


def test_a_dependency_is_suspended_where_every_owner_is() -> None:
    claimed = {"Pod demo/a": {"clusters": ["m1"], "suspended": ["m1", "m2"]}, "Pod demo/b": {"clusters": ["m1"]}}
    _, result, _ = decide({**TWO_OWNERS, "claimed": claimed})
    (inherited,) = result.policies.rows.values()
    assert inherited.suspension == Suspension()
    claimed["Pod demo/b"]["suspended"] = ["m2", "m3"]
    _, result, _ = decide({**TWO_OWNERS, "claimed": claimed})
    (inherited,) = result.policies.rows.values()
    assert inherited.suspension == Suspension(clusters=("m2",))


def test_a_claimed_dependency_whose_placement_is_unknown_keeps_its_own_policy() -> None:
    fleet, _, own = decide(TWO_OWNERS)
    identity = next(identity for identity in fleet.templates if identity.kind == "ConfigMap")
    policies = {owner: policy({}) for owner in own} | {identity: policy({"policy": "own"})}
    binding = dependencies_of(fleet, policies, own).bindings.rows[identity]
    assert binding.policy == PolicyRef("PropagationPolicy", "demo", "own")
    assert not binding.is_dependency


def test_the_result_does_not_depend_on_the_order_of_its_input() -> None:
    fleet, result, own = decide(TWO_OWNERS)
    policies = {identity: policy({}) for identity in reversed(list(own))}
    turned = replace(fleet, templates=dict(reversed(list(fleet.templates.items()))))
    again = dependencies_of(turned, policies, dict(reversed(list(own.items()))))
    assert again.bindings.rows == result.bindings.rows
