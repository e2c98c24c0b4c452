from __future__ import annotations

from typing import Any

import pytest

from reconciler.fleet.cluster_documents import is_cluster, parse_cluster
from tests.unit.policy_cases import cases, check_problems, check_values, document_of


@pytest.mark.parametrize("case", cases("policies/clusters.yaml"))
def test_member_reads_as_documented(case: dict[str, Any]) -> None:
    cluster, problems = parse_cluster(document_of(case, "Cluster"))
    check_problems(case, problems)
    check_values(case, "cluster", cluster)


def test_only_the_three_kinds_declare_members() -> None:
    assert is_cluster("cluster.karmada.io/v1alpha1", "Cluster")
    assert is_cluster("cluster.open-cluster-management.io/v1", "ManagedCluster")
    assert is_cluster("multicluster.x-k8s.io/v1alpha1", "ClusterProfile")
    assert is_cluster("multicluster.x-k8s.io/v1alpha2", "ClusterProfile")
    assert not is_cluster("cluster.karmada.io/v1alpha1", "ManagedCluster")
    assert not is_cluster("cluster.x-k8s.io/v1beta1", "Cluster")
