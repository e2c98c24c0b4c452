"""A schedule that an edit changes from afar is made again: a schedule built on another is the one made from nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.render import changed_identities
from reconciler.render.signatures import signatures
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet
from tests.fakes.worlds import NOW, config_map, deployment, fleet_of, policy

WEB = Identity("apps", "Deployment", "demo", "web")
CONFIG = Identity("", "ConfigMap", "demo", "config")
SERVICE = Identity("", "Service", "demo", "web")
NAMESPACE = Identity("", "Namespace", "", "demo")
SCALER: dict[str, Any] = {
    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "demo"},
    "spec": {"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}  # fmt: skip

Copies = Mapping[Identity, Collection[str]]


def again(*rounds: tuple[Fleet, Copies]) -> tuple[Schedule, set[Identity]]:
    """The last schedule, with what it says otherwise than the one before it."""
    tables, schedule, changed = ScheduleTables(), None, set[Identity]()
    for fleet, copies in rounds:
        before, schedule = (
            schedule,
            schedule_fleet(fleet, Observations(), NOW, copies=copies, tables=tables, interpreters=BUILT_IN_KINDS),
        )
        assert schedule == schedule_fleet(fleet, Observations(), NOW, copies=copies, interpreters=BUILT_IN_KINDS)
        changed = changed_identities(before, schedule, tables.changed)
        assert changed == changed_identities(before, schedule)
        new = signatures(schedule)
        old = signatures(before) if before is not None else dict.fromkeys(new)
        assert changed == {identity for identity in {*old, *new} if old.get(identity) != new.get(identity)}
    assert schedule is not None, "there is a round"
    return schedule, changed


def web(*clusters: str, **spec: Any) -> list[dict[str, Any]]:
    """A Deployment with what goes along with it. `spec`: of its policy."""
    body, governing = deployment("web"), policy("Deployment", *clusters, propagateDeps=True, **spec)
    body["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "config"}}]
    governing["metadata"]["annotations"] = {"fleet.reconciler/bring": "services,autoscalers"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "demo"},
               "spec": {"selector": {"app": "web"}}}  # fmt: skip
    return [body, governing, config_map("config"), service]


def test_what_goes_along_leaves_when_the_last_old_copy_of_their_owner_does() -> None:
    fleet = fleet_of(*web("m1"))
    kept, _ = again((fleet, {WEB: {"m1", "m2"}}))
    assert kept.bindings[CONFIG].clusters == ("m1", "m2")
    left, changed = again((fleet, {WEB: {"m1", "m2"}}), (fleet, {WEB: {"m1"}}))
    assert left.bindings[CONFIG].clusters == ("m1",)
    assert changed == {CONFIG, SERVICE, NAMESPACE}


def test_companions_follow_the_terms_of_the_policy_that_brings_them() -> None:
    keeping, pruning = (fleet_of(*web("m1", preserveResourcesOnDeletion=keep)) for keep in (True, False))
    decided, changed = again((keeping, {}), (pruning, {}))
    assert not decided.policies[SERVICE].keep
    assert SERVICE in changed


def test_replicas_are_taken_back_when_their_autoscaler_goes() -> None:
    before, _ = again((fleet_of(*web("m1"), SCALER), {}))
    assert before.yielded == {WEB: {"m1"}}
    decided, changed = again((fleet_of(*web("m1"), SCALER), {}), (fleet_of(*web("m1")), {}))
    assert not decided.yielded
    assert WEB in changed


def test_a_namespace_that_is_not_to_be_propagated_any_more_is_left() -> None:
    labels = {"namespace.karmada.io/skip-auto-propagation": "true"}
    plain, skipped = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo", "labels": given}}
        for given in ({}, labels)
    )
    decided, changed = again((fleet_of(*web("m1"), plain), {}), (fleet_of(*web("m1"), skipped), {}))
    assert NAMESPACE not in decided.bindings
    assert NAMESPACE in changed


def test_what_goes_nowhere_does_not_mind_that_its_namespace_leaves() -> None:
    nowhere, m1 = (policy("ConfigMap", *clusters, name=clusters[0]) for clusters in (("absent",), ("m1",)))
    nowhere["spec"]["resourceSelectors"][0]["name"], m1["spec"]["resourceSelectors"][0]["name"] = "config", "other"
    left = [config_map("config"), nowhere]
    decided, changed = again((fleet_of(*left, config_map("other"), m1), {}), (fleet_of(*left), {}))
    assert CONFIG in decided.bindings
    assert changed == {NAMESPACE, CONFIG._replace(name="other")}


ROUTE = Identity("gateway.networking.k8s.io", "HTTPRoute", "demo", "front")
FAR = Identity("", "Service", "data", "db")
GRANT = Identity("gateway.networking.k8s.io", "ReferenceGrant", "data", "in")
ROUTED: dict[str, Any] = {
    "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
    "metadata": {"name": "front", "namespace": "demo"},
    "spec": {"rules": [{"backendRefs": [{"name": "web"}, {"name": "db", "namespace": "data"}]}]},
}  # fmt: skip
DATABASE: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "data"}}


def grant(guest: str) -> dict[str, Any]:
    spec = {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": guest}],
            "to": [{"group": "", "kind": "Service"}]}  # fmt: skip
    return {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
            "metadata": {"name": "in", "namespace": "data"}, "spec": spec}  # fmt: skip


def routed(*others: dict[str, Any]) -> Fleet:
    """A route under a policy of its own, whose second backend is in another namespace."""
    governing = policy("HTTPRoute", "m1", propagateDeps=True)
    governing["spec"]["resourceSelectors"][0]["apiVersion"] = "gateway.networking.k8s.io/v1"
    return fleet_of(governing, ROUTED, DATABASE, *others)


def test_what_another_namespace_grants_later_travels_from_then_on() -> None:
    decided, changed = again((routed(), {}), (routed(grant("other")), {}), (routed(grant("demo")), {}))
    assert {decided.bindings[identity].clusters for identity in (ROUTE, FAR, GRANT)} == {("m1",)}
    assert changed == {FAR, GRANT, Identity("", "Namespace", "", "data")}
    decided, _ = again((routed(grant("demo")), {}), (routed(), {}))
    assert FAR not in decided.bindings


def test_a_namespace_follows_what_a_companion_brings_from_it() -> None:
    brought = web("m1")
    brought[1]["metadata"]["annotations"] = {"fleet.reconciler/bring": "routes"}
    before = fleet_of(*brought, ROUTED, DATABASE)
    decided, changed = again((before, {}), (fleet_of(*brought, ROUTED, DATABASE, grant("demo")), {}))
    assert decided.bindings[FAR].clusters == decided.bindings[Identity("", "Namespace", "", "data")].clusters == ("m1",)
    assert changed == {FAR, GRANT, Identity("", "Namespace", "", "data")}
