from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow
from reconciler.api.refs import GVK, Identity
from reconciler.controller.cluster_reads.clusters_needed import clusters_with_room, is_room_needed, workloads_to_observe
from reconciler.kinds import BUILT_IN_KINDS, Interpreter, Registry
from reconciler.scheduler import Schedule, schedule_fleet
from tests.fakes.raising import registry_with
from tests.fakes.worlds import NOW, config_map, deployment, fleet_of, policy

DYNAMIC: dict[str, Any] = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}


def policy_of(name: str, *, dynamic: bool) -> dict[str, Any]:
    found = policy("Deployment", "m1", "m2", name=name)
    found["spec"]["resourceSelectors"][0]["name"] = name
    if dynamic:
        found["spec"]["placement"]["replicaScheduling"] = DYNAMIC
    return found


def store(*more: dict[str, Any], image: str = "nginx:1", moving: str = "nginx:1", is_dynamic: bool = True) -> Fleet:
    """One Deployment that is divided by free capacity, one that is not, and one that no policy claims."""
    return fleet_of(
        deployment("moving", image=moving), policy_of("moving", dynamic=is_dynamic), deployment("still", image=image),
        policy_of("still", dynamic=False), deployment("nobodys"), *more,
    )  # fmt: skip


def decided(fleet: Fleet) -> Schedule:
    return schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)


def observed(fleet: Fleet, before: Fleet | None = None) -> set[str]:
    return {found.name for found in workloads_to_observe(fleet, BUILT_IN_KINDS, decided(before) if before else None)}


def test_before_the_first_decision_every_workload_is_observed() -> None:
    assert observed(store(config_map())) == {"moving", "still", "nobodys"}


def test_workloads_to_which_capacity_does_not_matter_are_left_out() -> None:
    assert observed(store(), store()) == {"moving"}


def test_a_workload_that_has_come_since_is_observed() -> None:
    assert observed(store(deployment("new")), store()) == {"moving", "new"}


def test_after_a_change_of_policies_every_workload_is_observed() -> None:
    assert observed(store(), store(is_dynamic=False)) == {"moving", "still", "nobodys"}


def test_room_is_needed_for_what_it_divides_for_what_is_new_and_after_a_change_of_policies() -> None:
    before = decided(store())
    assert not is_room_needed(store(image="nginx:2"), before)
    assert is_room_needed(store(moving="nginx:2"), before)
    assert is_room_needed(store(deployment("new")), before)
    assert is_room_needed(store(policy_of("new", dynamic=False)), before)
    assert is_room_needed(store(), None)


def test_no_room_is_needed_where_nothing_is_divided_by_it() -> None:
    assert not is_room_needed(store(is_dynamic=False), None)


def kinds_observed(
    policy_spec: dict[str, Any], *, is_decided: bool, interpreters: Registry = BUILT_IN_KINDS
) -> set[str]:
    """Return those of a Deployment, a training job, a custom resource and what runs nothing that are observed."""
    daemon = deployment()
    daemon["kind"] = "DaemonSet"
    del daemon["spec"]["replicas"]
    templates = [deployment(), daemon]
    templates += [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "app", "namespace": "demo"}}
        for version, kind in (
            ("kubeflow.org/v1", "PyTorchJob"), ("example.com/v1", "Widget"), ("v1", "ConfigMap"),
            ("rbac.authorization.k8s.io/v1", "Role"),
        )
    ]  # fmt: skip
    rule = policy("Deployment", "m1", "m2", name="all", **policy_spec)
    rule["spec"]["resourceSelectors"] = [{"apiVersion": t["apiVersion"], "kind": t["kind"]} for t in templates]
    fleet = fleet_of(*templates, rule)
    found = workloads_to_observe(fleet, interpreters, decided(fleet) if is_decided else None)
    return {identity.kind for identity in found if identity.name == "app"}


@pytest.mark.parametrize("is_decided", [False, True])
def test_whatever_may_run_something_is_observed_where_it_may_fail_over(is_decided: bool) -> None:
    spec = {"failover": {"application": {}}, "propagateDeps": True}
    assert kinds_observed(spec, is_decided=is_decided) == {"Deployment", "DaemonSet", "PyTorchJob", "Widget"}


def test_what_has_no_replicas_is_not_observed_where_nothing_may_fail_over() -> None:
    assert kinds_observed({}, is_decided=False) == {"Deployment", "PyTorchJob"}
    assert kinds_observed({}, is_decided=True) == set()


def test_what_a_plugin_says_has_replicas_is_observed() -> None:
    class Widget(Interpreter):
        replicas_path = ("spec", "size")

    interpreters = registry_with(("plugin widget", Widget(("example.com", "Widget"))))
    found = kinds_observed({}, is_decided=False, interpreters=interpreters)
    assert found == {"Deployment", "PyTorchJob", "Widget"}


def dynamic(name: str, *clusters: str, **spec: Any) -> dict[str, Any]:
    found = policy("Deployment", *clusters, name=name, **spec)
    found["spec"]["placement"]["replicaScheduling"] = DYNAMIC
    return found


def applied(cluster: str, claim: str) -> dict[str, dict[Identity, AppliedRow]]:
    identity = Identity("apps", "Deployment", "demo", "app")
    row = AppliedRow(cluster=cluster, gvk=GVK("apps", "v1", "Deployment"), identity=identity, policy=claim)
    return {cluster: {identity: row}}


def test_room_matters_where_a_policy_that_looks_at_it_may_place_and_nowhere_else() -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1", "m2", "m3"), dynamic("free", "m2"))
    assert clusters_with_room(fleet, {}) == {"m2"}


def test_room_matters_nowhere_without_such_a_policy_and_everywhere_where_it_names_no_clusters() -> None:
    assert clusters_with_room(fleet_of(deployment(), policy("Deployment")), {}) == frozenset()
    assert clusters_with_room(fleet_of(deployment(), dynamic("free")), {}) == {"m1", "m2", "m3"}


def test_room_matters_in_every_tier_that_may_be_spilled_over_to() -> None:
    free = dynamic("free", api="policy.karmada.io")
    free["spec"]["placement"]["clusterAffinities"] = [
        {"affinityName": "own", "clusterNames": ["m1"]}, {"affinityName": "rented", "clusterNames": ["m3"]},
    ]  # fmt: skip
    assert clusters_with_room(fleet_of(deployment(), free), {}) == {"m1", "m3"}


def test_room_matters_where_a_gang_or_a_failover_may_go() -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m3", failover={"application": {}}))
    assert clusters_with_room(fleet, {}) == {"m3"}


def test_room_matters_where_a_copy_is_that_was_placed_by_it() -> None:
    fleet = fleet_of(deployment(), policy("Deployment", "m1"), dynamic("free", "m2"))
    assert clusters_with_room(fleet, applied("m3", "PropagationPolicy demo/free")) == {"m2", "m3"}
    assert clusters_with_room(fleet, applied("m3", "PropagationPolicy demo/app")) == {"m2"}
