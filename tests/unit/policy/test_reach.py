from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.fleet import FrozenReach, Template
from reconciler.api.policies import LabelRequirement, LabelSelector, Operator, ResourceSelector
from reconciler.api.problem import Source
from reconciler.api.refs import Identity, PolicyRef
from reconciler.policy import FrozenReaches
from tests.unit.policy.selecting import selects
from tests.unit.policy_cases import template_of

WEB = template_of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "demo"}})
BROKEN = Source("broken.yaml", 3)
DEPLOYMENTS = ResourceSelector(api_version="apps/v1", kind="Deployment", namespace="demo")
SECRETS = ResourceSelector(api_version="v1", kind="Secret", namespace="demo")
ANYWHERE = ResourceSelector(api_version="apps/v1", kind="Deployment")
DEMO_POLICY = PolicyRef("PropagationPolicy", "demo", "p")
OTHER_POLICY = PolicyRef("PropagationPolicy", "other", "p")
CLUSTER_POLICY = PolicyRef("ClusterPropagationPolicy", "", "p")


@pytest.mark.parametrize(
    ("reach", "is_frozen"),
    [
        pytest.param(FrozenReach(source=BROKEN, everything=True), True, id="everything"),
        pytest.param(FrozenReach(source=BROKEN, identities=frozenset({WEB.identity})), True, id="its identity"),
        pytest.param(
            FrozenReach(source=BROKEN, identities=frozenset({Identity("apps", "Deployment", "demo", "db")})),
            False,
            id="another identity",
        ),
        pytest.param(FrozenReach(source=BROKEN, namespace="demo"), True, id="its namespace"),
        pytest.param(FrozenReach(source=BROKEN, namespace="other"), False, id="another namespace"),
        pytest.param(FrozenReach(source=BROKEN, selectors=(DEPLOYMENTS,), policy=DEMO_POLICY), True, id="a selector"),
        pytest.param(
            FrozenReach(source=BROKEN, selectors=(SECRETS,), policy=DEMO_POLICY), False, id="another selector"
        ),
        pytest.param(
            FrozenReach(source=BROKEN, selectors=(SECRETS, ANYWHERE), policy=CLUSTER_POLICY),
            True,
            id="a cluster policy",
        ),
        pytest.param(
            FrozenReach(source=BROKEN, selectors=(ANYWHERE,), policy=OTHER_POLICY), False, id="a policy elsewhere"
        ),
        pytest.param(
            FrozenReach(source=BROKEN, selectors=(SECRETS,), policy=DEMO_POLICY, namespace="demo"),
            False,
            id="selectors replace the namespace",
        ),
        pytest.param(FrozenReach(source=BROKEN), False, id="nothing"),
    ],
)
def test_reach_freezes_what_the_broken_document_might_have_said(reach: FrozenReach, is_frozen: bool) -> None:
    assert (FrozenReaches((reach,)).by(WEB) is reach) is is_frozen


def test_names_the_first_reach_that_holds_it() -> None:
    first, second = FrozenReach(source=BROKEN, namespace="other"), FrozenReach(source=BROKEN, namespace="demo")
    assert FrozenReaches((first, second)).by(WEB) is second
    assert FrozenReaches(()).by(WEB) is None


IDENTITIES = st.builds(
    Identity,
    st.just("apps"),
    st.sampled_from(["Deployment", "StatefulSet"]),
    st.sampled_from(["demo", "other"]),
    st.sampled_from(["web", "db"]),
)
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2)
REQUIREMENTS = st.builds(
    LabelRequirement,
    key=st.sampled_from(["a", "b"]),
    operator=st.sampled_from(list(Operator)),
    values=st.frozensets(st.sampled_from(["1", "2"]), min_size=1),
)
SELECTORS = st.builds(
    ResourceSelector,
    api_version=st.just("apps/v1"),
    kind=st.sampled_from(["Deployment", "StatefulSet"]),
    namespace=st.sampled_from(["", "demo", "other"]),
    name=st.sampled_from(["", "", "web"]),
    labels=st.none() | st.builds(LabelSelector, requirements=st.lists(REQUIREMENTS, max_size=3).map(tuple)),
)
REACHES = st.builds(
    FrozenReach,
    source=st.just(BROKEN),
    everything=st.sampled_from([False, False, False, True]),
    namespace=st.sampled_from(["", "", "demo"]),
    identities=st.frozensets(IDENTITIES, max_size=2),
    selectors=st.lists(SELECTORS, max_size=2).map(tuple),
    policy=st.sampled_from([None, DEMO_POLICY, OTHER_POLICY, CLUSTER_POLICY]),
)


def reaches(reach: FrozenReach, identity: Identity, labels: Mapping[str, str]) -> bool:
    """Return what a reach holds, told by asking it alone."""
    if reach.everything or identity in reach.identities:
        return True
    if not reach.selectors:
        return bool(reach.namespace) and reach.namespace == identity.namespace
    own = reach.policy.namespace if reach.policy else ""
    template = _template(identity, labels)
    return own in ("", identity.namespace) and any(selects(found, template) for found in reach.selectors)


def _template(identity: Identity, labels: Mapping[str, str]) -> Template:
    metadata = {"name": identity.name, "namespace": identity.namespace, "labels": dict(labels)}
    return template_of({"apiVersion": "apps/v1", "kind": identity.kind, "metadata": metadata})


@given(st.lists(REACHES, max_size=5).map(tuple), st.lists(st.tuples(IDENTITIES, LABELS), max_size=4))
def test_the_index_finds_what_asking_each_broken_document_finds(
    found: tuple[FrozenReach, ...], templates: list[tuple[Identity, dict[str, str]]]
) -> None:
    frozen = FrozenReaches(found)
    for identity, labels in templates:
        first = next((reach for reach in found if reaches(reach, identity, labels)), None)
        assert frozen.by(_template(identity, labels)) is first


def test_asks_no_selector_that_cannot_select(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 broken policies a template meets those that may select it, whatever labels their selectors ask for."""
    asked: list[LabelSelector] = []
    matches = LabelSelector.matches

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        asked.append(selector)
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    common, several = _asks("a", Operator.IN, "1"), _asks("a", Operator.EXISTS)
    owns = [f"own{number}" for number in range(100)]
    asking = [
        *((common, _asks("b", Operator.IN, own, f"{own}x")) for own in owns),
        *((several, _asks(own, Operator.EXISTS)) for own in owns),
    ]
    broken = tuple(FrozenReach(source=BROKEN, policy=DEMO_POLICY, selectors=(_by(found),)) for found in asking)
    assert FrozenReaches(broken).by(_template(WEB.identity, {"a": "1", "b": "own7"})) is broken[7]
    assert len(asked) <= 3


def _asks(key: str, operator: Operator, *values: str) -> LabelRequirement:
    return LabelRequirement(key=key, operator=operator, values=frozenset(values))


def _by(requirements: tuple[LabelRequirement, ...]) -> ResourceSelector:
    return ResourceSelector(api_version="apps/v1", kind="Deployment", labels=LabelSelector(requirements=requirements))
