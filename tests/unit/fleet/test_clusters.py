from __future__ import annotations

from typing import Any

import pytest

from reconciler.fleet import DocumentKind
from reconciler.fleet.cluster_documents import parse_cluster
from reconciler.fleet.documents import kind_of
from tests.unit.policy_cases import cases, check_problems, check_values, document_of


@pytest.mark.parametrize("case", cases("policies/clusters.yaml"))
def test_member_reads_as_documented(case: dict[str, Any]) -> None:
    cluster, problems = parse_cluster(document_of(case, "Cluster"))
    check_problems(case, problems)
    check_values(case, "cluster", cluster)


def test_only_the_three_kinds_declare_members() -> None:
    assert kind_of("cluster.karmada.io/v1alpha1", "Cluster") is DocumentKind.CLUSTER
    assert kind_of("cluster.open-cluster-management.io/v1", "ManagedCluster") is DocumentKind.CLUSTER
    assert kind_of("multicluster.x-k8s.io/v1alpha1", "ClusterProfile") is DocumentKind.CLUSTER
    assert kind_of("multicluster.x-k8s.io/v1alpha2", "ClusterProfile") is DocumentKind.CLUSTER
    assert kind_of("cluster.karmada.io/v1alpha1", "ManagedCluster") is not DocumentKind.CLUSTER
    assert kind_of("cluster.x-k8s.io/v1beta1", "Cluster") is not DocumentKind.CLUSTER
