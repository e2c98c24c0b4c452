from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FrozenReach
from reconciler.api.problem import Severity, Source
from reconciler.api.refs import PolicyRef
from reconciler.policy import claim
from tests.unit.policy_cases import cases, fleet_of


@pytest.mark.parametrize("case", cases("claims/precedence.yaml"))
def test_claims_by_precedence(case: dict[str, Any]) -> None:
    claims = claim(fleet_of(case["store"]))
    won = {str(identity): str(won.policy) for identity, won in claims.claims.items()}
    assert won == case.get("claims", {})
    assert [str(identity) for identity in claims.unclaimed] == case.get("unclaimed", [])
    lost = {
        str(identity): [[str(ref), why] for ref, why in won.losers]
        for identity, won in claims.claims.items()
        if won.losers
    }
    assert lost == case.get("losers", {})
    assert sorted(problem.code for problem in claims.problems) == case.get("problems", [])


def test_says_which_selector_won() -> None:
    claims = claim(fleet_of(STORE))
    reasons = {str(identity): [str(reason) for reason in won.reasons] for identity, won in claims.claims.items()}
    assert reasons["Deployment demo/web"] == ["PropagationPolicy demo/by-name selects it by name (store.yaml:7)"]
    assert claims.selecting[PolicyRef("PropagationPolicy", "demo", "a-kind")] == {0, 1}


def test_templates_in_a_frozen_reach_get_no_claim() -> None:
    fleet = fleet_of(STORE)
    web = next(identity for identity in fleet.templates if identity.name == "web")
    reach = FrozenReach(source=Source("broken.yaml", 1), identities=frozenset({web}))
    claims = claim(replace(fleet, frozen=(reach,)))
    assert claims.frozen == {web: reach}
    assert web not in claims.claims
    assert web not in claims.unclaimed
    assert len(claims.claims) + len(claims.unclaimed) + len(claims.frozen) == len(fleet.templates)


def test_problems_stop_nothing() -> None:
    claims = claim(fleet_of("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kube-system}}"))
    assert [problem.severity for problem in claims.problems] == [Severity.WARNING]


STORE = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: by-name, namespace: demo}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: by-label, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: a-kind, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Secret}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: b-kind, namespace: demo}
spec:
  priority: 1
  resourceSelectors: [{apiVersion: v1, kind: Secret}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: rest}
spec:
  priority: 9
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: v1, kind: ConfigMap}
  - {apiVersion: v1, kind: Secret, name: s}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo, labels: {app: web}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, namespace: demo, labels: {app: web}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: db, namespace: demo}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: demo}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}
---
{apiVersion: v1, kind: Service, metadata: {name: c, namespace: other}}
"""


@given(st.randoms(use_true_random=False))
def test_claims_do_not_depend_on_any_order(random: Any) -> None:
    fleet = fleet_of(STORE)
    policies, templates = list(fleet.propagation), list(fleet.templates.items())
    random.shuffle(policies)
    random.shuffle(templates)
    again = Fleet(revision="test", propagation=tuple(policies), templates=dict(templates))
    assert claim(again) == claim(fleet)


@given(st.permutations(STORE.strip().split("\n---\n")))
def test_claims_do_not_depend_on_the_order_of_documents(documents: list[str]) -> None:
    def outcome(text: str) -> dict[str, tuple[str, list[tuple[str, str]]]]:
        claims = claim(fleet_of(text)).claims
        return {str(i): (str(c.policy), [(str(ref), why) for ref, why in c.losers]) for i, c in claims.items()}

    assert outcome("\n---\n".join(documents)) == outcome(STORE)
