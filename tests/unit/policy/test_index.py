from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.fleet import Template
from reconciler.api.policies import (
    Flavor,
    LabelRequirement,
    LabelSelector,
    Operator,
    OverridePolicy,
    PropagationPolicy,
    ResourceSelector,
)
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import PolicyRef
from reconciler.documents import is_never_distributed
from reconciler.policy import PolicyIndex, Score, best_matches
from tests.unit.policy.selecting import selects
from tests.unit.policy_cases import template_of

NAMESPACES = ["demo", "other", "kube-system"]
NAMES = ["web", "db", "demo"]
KINDS = [("apps/v1", "Deployment"), ("v1", "Secret"), ("v2", "Secret"), ("v1", "Namespace")]
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2)


@st.composite
def _templates(draw: st.DrawFn) -> Template:
    api_version, kind = draw(st.sampled_from(KINDS))
    metadata: dict[str, Any] = {"name": draw(st.sampled_from([*NAMES, "kube-system"])), "labels": draw(LABELS)}
    if kind != "Namespace":
        metadata["namespace"] = draw(st.sampled_from(NAMESPACES))
    return template_of({"apiVersion": api_version, "kind": kind, "metadata": metadata})


def _requirements() -> st.SearchStrategy[LabelRequirement]:
    values = st.frozensets(st.sampled_from(["1", "2"]), min_size=1)
    with_values = st.builds(
        LabelRequirement,
        key=st.sampled_from(["a", "b"]),
        operator=st.sampled_from([Operator.IN, Operator.NOT_IN]),
        values=values,
    )
    without = st.builds(
        LabelRequirement,
        key=st.sampled_from(["a", "b"]),
        operator=st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]),
    )
    return with_values | without


def _label_selectors() -> st.SearchStrategy[LabelSelector]:
    return st.builds(LabelSelector, requirements=st.lists(_requirements(), max_size=2).map(tuple))


@st.composite
def _selectors(draw: st.DrawFn) -> ResourceSelector:
    api_version, kind = draw(st.sampled_from(KINDS))
    return ResourceSelector(
        api_version=api_version,
        kind=kind,
        namespace=draw(st.sampled_from(["", *NAMESPACES])),
        name=draw(st.sampled_from(["", "", *NAMES])),
        labels=draw(st.none() | _label_selectors()),
    )


@st.composite
def _policies(draw: st.DrawFn) -> list[PropagationPolicy]:
    refs = st.builds(PolicyRef, st.just("P"), st.sampled_from(["", "demo", "other"]), st.sampled_from("pqrs"))
    return [
        PropagationPolicy(
            ref=ref, flavor=Flavor.ACK, source=NOWHERE, selectors=tuple(draw(st.lists(_selectors(), max_size=3)))
        )
        for ref in draw(st.lists(refs, unique=True, max_size=5))
    ]


TEMPLATES = st.lists(_templates(), max_size=8)


def score_of(policy: PropagationPolicy | OverridePolicy, template: Template) -> Score:
    """The best selector of a policy, found by trying each.

    A namespaced policy reaches its own namespace only; nothing reaches a system namespace. An override policy without
    selectors selects everything that it reaches and ranks with those that select by kind (Karmada).
    """
    if is_never_distributed(template.gvk, template.identity):
        return Score.NONE
    if policy.ref.namespace and policy.ref.namespace != template.identity.namespace:
        return Score.NONE
    if not policy.selectors:
        return Score.KIND if isinstance(policy, OverridePolicy) else Score.NONE
    return max(selects(selector, template) for selector in policy.selectors)


@given(_policies(), TEMPLATES)
def test_index_finds_what_trying_every_policy_finds(
    policies: list[PropagationPolicy], templates: list[Template]
) -> None:
    index = PolicyIndex(policies)
    for template in templates:
        found = {match.policy.ref: match.score for match in best_matches(index.matches(template))}
        scores = {policy.ref: score_of(policy, template) for policy in policies}
        assert found == {ref: score for ref, score in scores.items() if score is not Score.NONE}


def test_where_all_templates_differ_each_finds_its_own() -> None:
    requirement = LabelRequirement(key="a", operator=Operator.IN, values=frozenset({"v7", "v99"}))
    selectors = (
        ResourceSelector(api_version="v1", kind="Secret", labels=LabelSelector(requirements=(requirement,))),
        ResourceSelector(api_version="v1", kind="Secret", name="s3"),
    )
    ref = PolicyRef("P", "demo", "p")
    index = PolicyIndex([PropagationPolicy(ref=ref, flavor=Flavor.ACK, source=NOWHERE, selectors=selectors)])
    for _ in range(2):
        selected = []
        for number in range(100):
            metadata = {"name": f"s{number}", "namespace": "demo", "labels": {"a": f"v{number}"}}
            if index.matches(template_of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})):
                selected.append(number)
        assert selected == [3, 7, 99]


@given(_policies(), TEMPLATES)
def test_matches_name_the_selector_that_selects(policies: list[PropagationPolicy], templates: list[Template]) -> None:
    index = PolicyIndex(policies)
    for template in templates:
        for match in index.matches(template):
            assert match.selector is not None
            assert selects(match.policy.selectors[match.selector], template) is match.score


@given(_policies(), TEMPLATES)
def test_overrides_without_selectors_select_everything_they_reach(
    policies: list[PropagationPolicy], templates: list[Template]
) -> None:
    overrides = [
        OverridePolicy(ref=policy.ref, flavor=policy.flavor, source=NOWHERE, selectors=policy.selectors)
        for policy in policies
    ]
    index = PolicyIndex(overrides)
    for template in templates:
        found = {match.policy.ref: match.score for match in best_matches(index.matches(template))}
        scores = {override.ref: score_of(override, template) for override in overrides}
        assert found == {ref: score for ref, score in scores.items() if score is not Score.NONE}


def test_label_of_several_values_is_found_by_each_of_them() -> None:
    either = LabelSelector(
        requirements=(LabelRequirement(key="a", operator=Operator.IN, values=frozenset({"1", "2"})),)
    )
    selector = ResourceSelector(api_version="v1", kind="Secret", labels=either)
    policy = PropagationPolicy(
        ref=PolicyRef("P", "demo", "p"), flavor=Flavor.ACK, source=NOWHERE, selectors=(selector,)
    )
    index = PolicyIndex([policy])
    for value, found in (("1", 1), ("2", 1), ("3", 0)):
        metadata = {"name": "s", "namespace": "demo", "labels": {"a": value}}
        template = template_of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        assert len(index.matches(template)) == found


def test_a_policy_reaches_no_namesake_in_another_namespace() -> None:
    metadata = [{"name": name, "namespace": place, "labels": {"a": "1"}} for name in ("s", "t") for place in NAMESPACES]
    templates = [template_of({"apiVersion": "v1", "kind": "Secret", "metadata": found}) for found in metadata]
    label = LabelSelector(requirements=(LabelRequirement(key="a", operator=Operator.EXISTS),))
    for chosen in ({"name": "s"}, {"labels": label}):
        selector = ResourceSelector(api_version="v1", kind="Secret", **chosen)
        policy = PropagationPolicy(
            ref=PolicyRef("P", "demo", "p"), flavor=Flavor.ACK, source=NOWHERE, selectors=(selector,)
        )
        index = PolicyIndex([policy])
        assert {found.identity.namespace for found in templates if index.matches(found)} == {"demo"}


def test_the_index_does_not_try_every_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 policies that ask for a common label and one of their own are not asked one by one."""
    asked: list[str] = []
    matches = LabelRequirement.matches

    def counted(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
        asked.append(requirement.key)
        return matches(requirement, labels)

    monkeypatch.setattr(LabelRequirement, "matches", counted)
    common = (
        LabelRequirement(key="a", operator=Operator.IN, values=frozenset({"1"})),
        LabelRequirement(key="a", operator=Operator.EXISTS),
    )
    policies, templates = [], []
    for number in range(200):
        own = frozenset({f"v{number}", f"w{number}"})
        chosen = (
            (*common, LabelRequirement(key="b", operator=Operator.IN, values=own)),
            (common[1], LabelRequirement(key=f"v{number}", operator=Operator.EXISTS)),
        )
        selectors = tuple(
            ResourceSelector(api_version="v1", kind="Secret", labels=LabelSelector(requirements=found))
            for found in chosen
        )
        ref = PolicyRef("P", "demo", f"p{number}")
        policies.append(PropagationPolicy(ref=ref, flavor=Flavor.ACK, source=NOWHERE, selectors=selectors))
        labels = {"a": "1", "b": f"v{number}", f"v{number}": ""}
        metadata = {"name": f"s{number}", "namespace": "demo", "labels": labels}
        templates.append(template_of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
    forward = PolicyIndex(policies)
    for policy, template in zip(policies, templates, strict=True):
        assert {match.policy.ref for match in forward.matches(template)} == {policy.ref}
    assert len(asked) <= 10 * len(templates)
