"""Live objects become templates as a person would have written them, and policies that adopt them."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.policies import Flavor
from reconciler.api.refs import GVK, Identity
from reconciler.importers import reason_to_skip
from reconciler.importers.several import template_of
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.ownership import OwnershipRecord, mark, written_terms


def live(body: dict[str, Any]) -> LiveObject:
    gvk = GVK.parse(body.get("apiVersion", "v1"), body.get("kind", "ConfigMap"))
    metadata = body["metadata"]
    return LiveObject(
        gvk=gvk,
        identity=Identity(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"]),
        uid="u",
        resource_version="1",
        body=body,
    )


_RBAC = "rbac.authorization.k8s.io/v1"
OCM = [{"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "w"}]
_BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def cluster_object(api_version: str, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "demo", **metadata}}


def test_what_servers_and_controllers_wrote_is_gone() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "web", "namespace": "demo", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}], "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}},
    }  # fmt: skip
    assert template_of(live(body), BUILT_IN_KINDS) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "demo", "labels": {"app": "web"}},
        "spec": {"ports": [{"port": 80}]},
    }


def test_marks_of_a_fleet_are_gone() -> None:
    body = mark(config_map(), "shop", written_terms(OwnershipRecord(policy=None, flavor=Flavor.ACK)))
    assert template_of(live(body), BUILT_IN_KINDS) == config_map()


def test_items_of_a_list_get_their_kind_back() -> None:
    body = {"metadata": {"name": "c", "namespace": "demo"}, "data": {"a": "b"}}
    assert template_of(live(body), BUILT_IN_KINDS) == {**config_map(), "data": {"a": "b"}}


def made_secret(**metadata: Any) -> dict[str, Any]:
    """A Secret with the mark of an operator, and no owner."""
    return {**config_map(**metadata), "kind": "Secret"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (config_map(), ""),
        (config_map(ownerReferences=[{"kind": "Deployment"}]), "another object makes it"),
        (made_secret(annotations={"cert-manager.io/certificate-name": "tls"}), "an operator makes it"),
        (made_secret(labels={"reconcile.external-secrets.io/managed": "true"}), "an operator makes it"),
        (made_secret(labels={"app": "shop"}), ""),
        (config_map(ownerReferences=OCM), "Open Cluster Management holds it"),
        (config_map(ownerReferences=[{"kind": "A"}], labels={"kapp.k14s.io/app": "1"}), "another object makes it"),
        (config_map(labels={"kapp.k14s.io/app": "1"}), "kapp holds it"),
        (config_map(annotations={"configmanagement.gke.io/managed": "disabled"}), ""),
        (config_map(name="kube-root-ca.crt"), "every cluster makes its own"),
        ({**config_map(), "kind": "Secret", "type": "kubernetes.io/service-account-token"}, "every cluster makes"),
        (config_map(namespace="kube-system"), "no policy may select it"),
        (cluster_object("v1", "Namespace", "kube-public"), "no policy may select it"),
        (cluster_object("v1", "Namespace", "default"), "every cluster makes its own"),
        (cluster_object("v1", "Namespace", "demo"), ""),
        (cluster_object("v1", "Node", "n1"), "every cluster makes its own"),
        (cluster_object(_RBAC, "ClusterRole", "edit", labels=_BOOTSTRAPPING), "every cluster makes its own"),
        (cluster_object(_RBAC, "ClusterRole", "viewer"), ""),
        (cluster_object("scheduling.k8s.io/v1", "PriorityClass", "system-node-critical"), "every cluster makes"),
        (config_map(deletionTimestamp="2026-01-01T00:00:00Z"), "it is being deleted"),
        (mark(config_map(), "shop", written_terms(OwnershipRecord(policy=None))), "a fleet store holds it already"),
        (config_map(annotations={"meta.helm.sh/release-name": "x"}), "Helm holds it"),
    ],
    ids=[
        "plain",
        "owned",
        "of a Certificate",
        "of an ExternalSecret",
        "a Secret of a person",
        "brought by an agent",
        "owned, with the labels of its owner",
        "of a tool",
        "left by a tool",
        "root CA",
        "token",
        "in a system namespace",
        "system namespace",
        "default namespace",
        "namespace",
        "node",
        "role of the cluster",
        "role",
        "priority class of the cluster",
        "deleting",
        "ours",
        "helm",
    ],
)
def test_what_is_not_for_a_store_is_left_out(body: dict[str, Any], why: str) -> None:
    found = reason_to_skip(live(body))
    assert found.startswith(why)
    assert bool(found) is bool(why)
