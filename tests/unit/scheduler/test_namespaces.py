"""Namespaces that follow what lives in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.fleet import Fleet
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import Identity, PolicyRef
from reconciler.scheduler import NAMESPACE_FOLLOWS, bare_namespace, namespace_identity
from tests.fakes.tables import namespaces_of
from tests.fleets import with_templates

DEMO = namespace_identity("demo")


def bound(identity: Identity, *clusters: str, policy: PolicyRef | None = None) -> dict[Identity, Binding]:
    targets = tuple(TargetCluster(cluster=cluster) for cluster in clusters)
    return {identity: Binding(identity=identity, policy=policy, targets=targets)}


def config(name: str, namespace: str = "demo") -> Identity:
    return Identity("", "ConfigMap", namespace, name)


def fleet(*namespaces: Mapping[str, Any]) -> Fleet:
    bodies: Sequence[Mapping[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata} for metadata in namespaces
    ]
    return with_templates(Fleet(revision="test"), bodies)


def test_a_namespace_without_a_policy_goes_where_something_in_it_goes() -> None:
    bindings = bound(config("a"), "m1") | bound(config("b"), "m3", "m1") | bound(config("c"))
    (binding,) = namespaces_of(fleet({"name": "demo"}, {"name": "empty"}), bindings).values()
    assert (binding.identity, binding.policy, binding.clusters) == (DEMO, None, ("m1", "m3"))
    assert binding.cluster_reasons["m3"] == Reason(
        rule=NAMESPACE_FOLLOWS, text="ConfigMap demo/b lives in it there", cluster="m3"
    )


def test_a_namespace_without_a_template_is_bound_all_the_same() -> None:
    assert set(namespaces_of(fleet(), bound(config("a"), "m1"))) == {DEMO}
    bare = bare_namespace("demo")
    assert bare.body == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    assert (bare.identity, bare.source) == (DEMO, NOWHERE)


def test_a_claimed_namespace_keeps_its_placement_and_is_added_where_it_is_missing() -> None:
    policy = PolicyRef("ClusterPropagationPolicy", "", "ns")
    bindings = bound(DEMO, "m2", policy=policy) | bound(config("a"), "m1", "m2")
    (binding,) = namespaces_of(fleet({"name": "demo"}), bindings).values()
    assert (binding.policy, binding.clusters) == (policy, ("m1", "m2"))
    assert {cluster: reason.rule for cluster, reason in binding.cluster_reasons.items()} == {"m1": NAMESPACE_FOLLOWS}


def test_a_claimed_namespace_that_is_everywhere_already_stays_as_it_is() -> None:
    bindings = bound(DEMO, "m1", "m2", policy=PolicyRef("ClusterPropagationPolicy", "", "ns"))
    assert namespaces_of(fleet({"name": "demo"}), bindings | bound(config("a"), "m1")) == {}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "karmada-system", "fleet-system"])
def test_a_namespace_that_every_cluster_has_or_nobody_distributes_to_is_not_created(name: str) -> None:
    assert namespaces_of(fleet({"name": name}), bound(config("a", name), "m1")) == {}


def test_the_skip_label_of_karmada_is_honoured() -> None:
    skipped = {"name": "demo", "labels": {"namespace.karmada.io/skip-auto-propagation": "true"}}
    assert namespaces_of(fleet(skipped), bound(config("a"), "m1")) == {}


def test_what_is_cluster_scoped_needs_no_namespace() -> None:
    assert namespaces_of(fleet(), bound(Identity("", "PersistentVolume", "", "pv"), "m1")) == {}
