"""An object exported from one cluster is taken by another once the interpreters have pruned it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.api.clusters import Health
from reconciler.api.refs import GVK
from reconciler.kinds import BUILT_IN_KINDS
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

LABELS = {"app": "web"}
CPU_TARGET = {"type": "Utilization", "averageUtilization": 50}
POD = {"containers": [{"name": "a", "image": "a:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
RUN_ONCE = {"spec": {**POD, "restartPolicy": "Never"}}
SPECS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("apps/v1", "Deployment"): {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    ("apps/v1", "StatefulSet"): {
        "spec": {
            "serviceName": "web",
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        }
    },
    ("apps/v1", "DaemonSet"): {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    ("batch/v1", "Job"): {"spec": {"completions": 2, "ttlSecondsAfterFinished": 600, "template": RUN_ONCE}},
    ("batch/v1", "CronJob"): {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": RUN_ONCE}}}},
    ("v1", "Service"): {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    ("v1", "Secret"): {"stringData": {"password": "secret"}},
    ("v1", "ConfigMap"): {"data": {"a": "b"}},
    ("v1", "ServiceAccount"): {},
    ("v1", "PersistentVolumeClaim"): {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    ("networking.k8s.io/v1", "Ingress"): {
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": CPU_TARGET}}],
        }
    },
    ("v1", "LimitRange"): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    ("v1", "ResourceQuota"): {"spec": {"hard": {"pods": "90"}}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"minAvailable": 0, "selector": {"matchLabels": LABELS}}},
}  # fmt: skip


def test_a_pruned_export_is_taken_by_another_place(real_cluster: RealCluster) -> None:
    first, second = real_cluster.new_namespace("exports"), real_cluster.new_namespace("imports")
    bodies = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": first}, **rest}
        for (version, kind), rest in SPECS.items()
    ]
    real_cluster.apply(*bodies)
    wait_until(lambda: "status" in real_cluster.get("-n", first, "deployment", "web"), "the controllers have written")
    for version, kind in SPECS:
        group = GVK.parse(version, kind).group
        resource = f"{kind}.{version.rpartition('/')[2]}.{group}" if group else kind
        exported = real_cluster.get("-n", first, resource, "web")
        pruned = dict(BUILT_IN_KINDS.of(group, kind).sanitize(exported))
        assert set(pruned["metadata"]) <= {"name", "namespace", "labels", "annotations"}
        pruned["metadata"] = {**pruned["metadata"], "namespace": second}
        taken = json.loads(
            real_cluster.kubectl(
                "apply", "--server-side", "--field-manager=import", "-o", "json", "-f", "-", stdin=json.dumps(pruned)
            )
        )
        assert taken["metadata"]["namespace"] == second, kind


def test_health_follows_a_real_rollout(real_cluster: RealCluster) -> None:
    namespace = real_cluster.new_namespace("health")
    health = BUILT_IN_KINDS.of("apps", "Deployment").health
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": namespace}}
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, "progressDeadlineSeconds": 2}
    unschedulable = {**TEMPLATE, "spec": {**POD, "nodeSelector": {"no": "node"}}}

    def now() -> Health:
        return health(real_cluster.get("-n", namespace, "deployment", "web"))

    def status() -> str:
        pods = real_cluster.get("-n", namespace, "deployment", "web")["status"]
        return f"replicas: {pods.get('replicas')} of generation {pods.get('observedGeneration')}"

    real_cluster.apply({**body, "spec": {**spec, "template": unschedulable, "progressDeadlineSeconds": 600}})
    assert now() is Health.PROGRESSING
    real_cluster.apply({**body, "spec": {**spec, "template": unschedulable}})
    wait_until(lambda: now() is Health.UNHEALTHY, "the rollout has missed its deadline")
    real_cluster.add_node("n-health", cpu="4")
    real_cluster.apply({**body, "spec": spec})
    wait_until(lambda: now() is Health.HEALTHY, "the rollout has ended")
    real_cluster.apply({**body, "spec": {**spec, "template": unschedulable, "progressDeadlineSeconds": 600}})
    wait_until(lambda: "replicas: 2" in status(), "the old pod serves while the new one waits")
    assert now() is Health.PROGRESSING
    real_cluster.remove_node("n-health")
