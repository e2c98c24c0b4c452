"""The Rollout of each template. Source: Karmada, the most specific policy; the union of the models."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.fleet import Fleet
from reconciler.api.problem import Severity
from reconciler.api.refs import Identity, PolicyRef
from reconciler.api.rollouts import Rollout
from reconciler.rollouts import refused_without_revisions, select
from tests.unit.policy_cases import template_of
from tests.unit.rollouts.looks import rollout_of

WEB = Identity("apps", "Deployment", "shop", "web")
CONFIG = Identity("", "ConfigMap", "shop", "config")
STAGES = [{"name": "all", "clusters": {}}]


def fleet_of(**scopes: dict[str, Any]) -> Fleet:
    """A Deployment shop/web with the label tier: front, its ConfigMap, and Rollouts with these scopes."""
    web = {"name": "web", "namespace": "shop", "labels": {"tier": "front"}}
    templates = [
        template_of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": web}),
        template_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config", "namespace": "shop"}}),
    ]
    rollouts = []
    for name, scope in sorted(scopes.items()):
        found = rollout_of({"templates": scope, "stages": STAGES})
        fields = {field: getattr(found, field) for field in found.__struct_fields__}
        rollouts.append(Rollout(**{**fields, "name": name}))
    return Fleet(revision="test", templates={found.identity: found for found in templates}, rollouts=tuple(rollouts))


BY_POLICY = {"policies": ["shop/web"]}
BY_LABEL = {"labelSelector": {"matchLabels": {"tier": "front"}}}
BY_NAMESPACE = {"namespaces": ["shop"]}


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        ({}, ()),
        ({"all": {}}, ("all",)),
        ({"all": {}, "shop": BY_NAMESPACE}, ("shop",)),
        ({"label": BY_LABEL, "shop": BY_NAMESPACE}, ("label",)),
        ({"label": BY_LABEL, "policy": BY_POLICY}, ("policy",)),
        ({"label": BY_LABEL, "both": {**BY_LABEL, **BY_NAMESPACE}}, ("both",)),
        ({"other": {"namespaces": ["bakery"]}}, ()),
        ({"other": {**BY_NAMESPACE, "labelSelector": {"matchLabels": {"tier": "back"}}}}, ()),
        ({"other": {"policies": ["shop/other"]}}, ()),
    ],
)
def test_the_most_specific_speaks(scopes: dict[str, Any], names: tuple[str, ...]) -> None:
    found = select(fleet_of(**scopes), {WEB: PolicyRef("PropagationPolicy", "shop", "web")}, {})
    assert found.rollouts.get(WEB, ()) == names
    assert not found.problems


def test_a_cluster_policy_is_named_without_a_namespace() -> None:
    governing = {WEB: PolicyRef("ClusterPropagationPolicy", "", "base")}
    assert select(fleet_of(base={"policies": ["base"]}), governing, {}).rollouts == {WEB: ("base",)}


def test_a_tie_is_an_error_and_its_template_stays_as_it_is() -> None:
    found = select(fleet_of(a=BY_NAMESPACE, b=BY_NAMESPACE), {}, {})
    assert found.tied == {WEB: ("a", "b"), CONFIG: ("a", "b")}
    assert not found.rollouts
    assert {(problem.code, problem.severity) for problem in found.problems} == {
        ("rollout-template-tied", Severity.ERROR)
    }


def test_a_dependency_goes_with_its_owner() -> None:
    found = select(fleet_of(label=BY_LABEL, shop=BY_NAMESPACE), {}, {CONFIG: [WEB]})
    assert found.rollouts == {WEB: ("label",), CONFIG: ("label",)}
    assert not found.problems


def test_a_dependency_of_two_rollouts_goes_with_the_earlier_one() -> None:
    other = Identity("apps", "Deployment", "bakery", "oven")
    bread = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "oven", "namespace": "bakery"}}
    fleet = fleet_of(label=BY_LABEL, oven={"namespaces": ["bakery"]})
    fleet = Fleet(revision="test", templates={**fleet.templates, other: template_of(bread)}, rollouts=fleet.rollouts)
    found = select(fleet, {}, {CONFIG: [WEB, other]})
    assert found.rollouts[CONFIG] == ("label", "oven")
    assert [problem.code for problem in found.problems] == ["rollout-dependency-shared"]


def test_a_dependency_of_one_that_changes_at_once_changes_at_once() -> None:
    other = Identity("apps", "Deployment", "bakery", "oven")
    found = select(fleet_of(label=BY_LABEL), {}, {CONFIG: [WEB, other]})
    assert found.rollouts == {WEB: ("label",)}
    assert [problem.code for problem in found.problems] == ["rollout-dependency-shared"]


def test_a_directory_refuses_rollouts_by_name() -> None:
    (problem,) = refused_without_revisions([rollout_of({"stages": STAGES})])
    assert (problem.code, problem.severity) == ("rollout-needs-revisions", Severity.ERROR)
    assert problem.source.path == "rollouts/default.yaml"
