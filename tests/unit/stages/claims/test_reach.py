from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconciler.model.fleet import Fleet, Reach
from reconciler.model.policy import ResourceSelector
from reconciler.model.problem import Source
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.claims.reach import frozen_by
from tests.unit.stages.policy_cases import template_of

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
        pytest.param(Reach(source=BROKEN, everything=True), True, id="everything"),
        pytest.param(Reach(source=BROKEN, identities=frozenset({WEB.identity})), True, id="its identity"),
        pytest.param(
            Reach(source=BROKEN, identities=frozenset({Identity("apps", "Deployment", "demo", "db")})),
            False,
            id="another identity",
        ),
        pytest.param(Reach(source=BROKEN, namespace="demo"), True, id="its namespace"),
        pytest.param(Reach(source=BROKEN, namespace="other"), False, id="another namespace"),
        pytest.param(Reach(source=BROKEN, selectors=(DEPLOYMENTS,), policy=DEMO_POLICY), True, id="a selector"),
        pytest.param(Reach(source=BROKEN, selectors=(SECRETS,), policy=DEMO_POLICY), False, id="another selector"),
        pytest.param(
            Reach(source=BROKEN, selectors=(SECRETS, ANYWHERE), policy=CLUSTER_POLICY), True, id="a cluster policy"
        ),
        pytest.param(Reach(source=BROKEN, selectors=(ANYWHERE,), policy=OTHER_POLICY), False, id="a policy elsewhere"),
        pytest.param(
            Reach(source=BROKEN, selectors=(SECRETS,), policy=DEMO_POLICY, namespace="demo"),
            False,
            id="selectors replace the namespace",
        ),
        pytest.param(Reach(source=BROKEN), False, id="nothing"),
    ],
)
def test_reach_freezes_what_the_broken_document_might_have_said(reach: Reach, is_frozen: bool) -> None:
    assert (frozen_by(Fleet(revision="test", frozen=(reach,)), WEB) is reach) is is_frozen


def test_names_the_first_reach_that_holds_it() -> None:
    first, second = Reach(source=BROKEN, namespace="other"), Reach(source=BROKEN, namespace="demo")
    fleet = Fleet(revision="test", frozen=(first, second))
    assert frozen_by(fleet, WEB) is second
    assert frozen_by(replace(fleet, frozen=()), WEB) is None
