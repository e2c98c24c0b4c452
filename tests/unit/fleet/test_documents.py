from __future__ import annotations

import pytest

from reconciler.api.content import JsonObject
from reconciler.api.problem import Document
from reconciler.fleet import DocumentKind, classify


def _document(body: JsonObject, path: str = "f.yaml") -> Document:
    return Document(path=path, line=1, body=body, locate=lambda steps: 1)


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("apps/v1", "Deployment", DocumentKind.TEMPLATE),
        ("v1", "Namespace", DocumentKind.TEMPLATE),
        ("example.com/v1", "PropagationPolicy", DocumentKind.TEMPLATE),
        ("policy.one.alibabacloud.com/v1alpha1", "PropagationPolicy", DocumentKind.PROPAGATION_POLICY),
        ("one.alibabacloud.com/v1alpha1", "ClusterPropagationPolicy", DocumentKind.PROPAGATION_POLICY),
        ("policy.karmada.io/v1alpha1", "OverridePolicy", DocumentKind.OVERRIDE_POLICY),
        ("policy.karmada.io/v1beta9", "ClusterOverridePolicy", DocumentKind.OVERRIDE_POLICY),
        ("cluster.karmada.io/v1alpha1", "Cluster", DocumentKind.CLUSTER),
        ("cluster.open-cluster-management.io/v1", "ManagedCluster", DocumentKind.CLUSTER),
        ("cluster.open-cluster-management.io/v1beta1", "Placement", DocumentKind.TEMPLATE),
        ("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", DocumentKind.CLUSTER),
        ("multicluster.x-k8s.io/v1alpha2", "ClusterProfile", DocumentKind.CLUSTER),
        ("multicluster.x-k8s.io/v1", "ClusterProfile", DocumentKind.CLUSTER),
        ("multicluster.x-k8s.io/v1alpha1", "ServiceImport", DocumentKind.TEMPLATE),
        ("config.projectsveltos.io/v1beta1", "ClusterProfile", DocumentKind.TEMPLATE),
        ("fleet.reconciler/v1alpha1", "Fleet", DocumentKind.FLEET_SETTINGS),
        ("fleet.reconciler/v1", "Flete", DocumentKind.MISTYPED),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", DocumentKind.SKIPPED),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", DocumentKind.TEMPLATE),
    ],
)
def test_kind_and_group_decide(api_version: str, kind: str, expected: DocumentKind) -> None:
    assert classify(_document({"apiVersion": api_version, "kind": kind})) is expected


def test_what_has_neither_is_skipped_and_what_has_one_is_not() -> None:
    assert classify(_document({"resources": []})) is DocumentKind.SKIPPED
    assert classify(_document({"apiVersion": "v1"})) is DocumentKind.TEMPLATE
    assert classify(_document({"kind": "Deployment"})) is DocumentKind.TEMPLATE
    assert classify(_document({"apiVersion": None, "kind": None})) is DocumentKind.TEMPLATE


def test_a_chart_is_no_template() -> None:
    assert classify(_document({"apiVersion": "v2", "name": "c"}, "x/Chart.yaml")) is DocumentKind.SKIPPED


def test_ciphertext_is_known_by_its_sops_mapping() -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "sops": {"version": "3"}}
    assert classify(_document(body)) is DocumentKind.ENCRYPTED
    assert classify(_document({**body, "sops": "no"})) is DocumentKind.TEMPLATE
    assert classify(_document({"values": 1, "sops": {}})) is DocumentKind.SKIPPED
