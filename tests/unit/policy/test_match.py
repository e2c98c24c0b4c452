from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.fleet import Template
from reconciler.api.policies import ClusterAffinity, PropagationPolicy
from reconciler.fleet.cluster_documents import parse_cluster
from reconciler.policy import PolicyIndex, Score, best_matches, matches_cluster, parse_propagation_policy
from tests.unit.policy_cases import cases, document_of, documents_of, template_of


def _policy(case: dict[str, Any], **spec: Any) -> PropagationPolicy:
    policy, problems = parse_propagation_policy(document_of(case | spec, "PropagationPolicy"))
    assert policy is not None, problems
    return policy


def score_of(policy: PropagationPolicy, template: Template) -> str:
    matches = best_matches(PolicyIndex([policy]).matches(template))
    return max((match.score for match in matches), default=Score.NONE).name


@pytest.mark.parametrize("case", cases("claims/selectors.yaml"))
def test_selector_scores_a_template(case: dict[str, Any]) -> None:
    policy = _policy({"kind": "ClusterPropagationPolicy"}, add={"resourceSelectors": [case["selector"]]})
    assert score_of(policy, template_of(case["template"])) == case["score"]


@pytest.mark.parametrize("case", cases("claims/scores.yaml"))
def test_policy_scores_a_template(case: dict[str, Any]) -> None:
    assert score_of(_policy(case), template_of(case["template"])) == case["score"]


@pytest.mark.parametrize("case", cases("claims/affinities.yaml"))
def test_affinity_matches_a_cluster_with_a_reason(case: dict[str, Any]) -> None:
    policy = _policy({}, placement={"clusterAffinity": case["affinity"]})
    (document,) = documents_of(case["cluster"])
    cluster, problems = parse_cluster(document)
    assert cluster is not None, problems
    assert policy.placement.affinity is not None
    assert matches_cluster(policy.placement.affinity, cluster) == (case["matches"], case["because"])


def test_empty_affinity_matches_every_cluster() -> None:
    (document,) = documents_of("{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1}}")
    cluster, _ = parse_cluster(document)
    assert cluster is not None
    assert matches_cluster(ClusterAffinity(), cluster) == (True, "every cluster matches")


def test_scores_are_ordered_by_precision() -> None:
    assert Score.NONE < Score.KIND < Score.LABEL < Score.NAME
