"""Immutable fields; every row is tried on a real API server in tests/apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.plan import MISSING, FieldChange
from reconciler.diff.immutable import IMMUTABLE, immutable_change
from reconciler.ownership import parse_path

STARTED = {"spec": {"suspend": True}, "status": {"startTime": "t"}}
BOUND = {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
SERVICE, PVC, JOB = ("", "Service"), ("", "PersistentVolumeClaim"), ("batch", "Job")


@pytest.mark.parametrize(
    ("kind", "path", "before", "after", "live", "is_replaced"),
    [
        (("apps", "Deployment"), "spec.selector", {}, {"a": 1}, {}, True),
        (("apps", "Deployment"), "spec.replicas", 1, 2, {}, False),
        (("apps", "StatefulSet"), "spec.template.metadata.labels.a", "1", "2", {}, False),
        (SERVICE, "spec.clusterIP", "10.0.0.1", "10.0.0.2", {}, True),
        (SERVICE, "spec.clusterIP", "10.0.0.1", MISSING, {}, False),
        (SERVICE, "spec.clusterIP", "", "10.0.0.2", {"spec": {"type": "ExternalName"}}, False),
        (PVC, "spec.storageClassName", MISSING, "fast", {}, False),
        (PVC, "spec.resources.requests.storage", "1Gi", "2Gi", {}, True),
        (PVC, "spec.resources.requests.storage", "1Gi", "2Gi", BOUND, False),
        (PVC, "spec.resources.requests.storage", "4Gi", "3Gi", BOUND, False),
        (PVC, "spec.resources.requests.storage", "4Gi", "1Gi", BOUND, True),
        (("storage.k8s.io", "StorageClass"), "reclaimPolicy", "Delete", MISSING, {}, False),
        (("storage.k8s.io", "StorageClass"), "reclaimPolicy", "Retain", MISSING, {}, True),
        (JOB, "spec.completions", 1, MISSING, {"spec": {"completionMode": "Indexed"}}, True),
        (("", "Pod"), "spec.tolerations", [{"key": "a"}], [{"key": "a"}, {"key": "b"}], {}, False),
        (("", "Pod"), "spec.tolerations", [{"key": "a"}], [{"key": "b"}], {}, True),
        (JOB, "spec.completions", 1, 2, {"spec": {"completionMode": "Indexed"}}, False),
        (JOB, "spec.template.spec.nodeSelector", MISSING, {}, {"spec": {"suspend": True}}, False),
        (JOB, "spec.template.spec.nodeSelector", MISSING, {}, STARTED, True),
        (("", "ConfigMap"), "data.a", "1", "2", {"immutable": True}, True),
        (("", "ConfigMap"), "data.a", "1", "2", {}, False),
        (("", "ConfigMap"), "metadata.labels.a", "1", "2", {"immutable": True}, False),
        (("", "Pod"), "spec.containers[name=a].image", "1", "2", {}, False),
        (("", "Pod"), "spec.containers[name=a].args", ["1"], ["2"], {}, True),
        (("", "Pod"), "metadata.labels.a", "1", "2", {}, False),
        (("example.com", "Thing"), "spec.selector", "1", "2", {}, False),
    ],
)  # fmt: skip
def test_needs_a_replacement(
    kind: tuple[str, str], path: str, before: Any, after: Any, live: dict[str, Any], is_replaced: bool
) -> None:
    parsed = parse_path(path)
    assert parsed is not None
    change = FieldChange(path=path, before=before, after=after)
    assert immutable_change(kind, [(parsed, change)], live) == (path if is_replaced else None)


def test_every_path_of_the_table_can_be_read() -> None:
    for paths in IMMUTABLE.values():
        assert all(parse_path(path) is not None for path in paths)
