"""Fields that an apply makes ours, as an API server writes it down."""

from __future__ import annotations

from reconciler.api.refs import GVK
from reconciler.diff import applied_fields
from reconciler.documents import builtin_schema
from reconciler.ownership import path_text
from reconciler.ownership.managed_fields import paths_of

POD = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "web", "namespace": "demo", "labels": {"app": "web"}, "finalizers": ["a/b"]},
    "spec": {
        "containers": [{"name": "c", "image": "i", "command": ["a", "b"], "ports": [{"containerPort": 80}]}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k"}],
        "volumes": [],
    },
}  # fmt: skip


def test_leaves_items_and_atomic_values_are_ours() -> None:
    fields = applied_fields(POD, builtin_schema(GVK("", "v1", "Pod")))
    # As a kube-apiserver 1.36 records an apply of this Pod, but for the empty list, of which it keeps nothing.
    assert sorted(map(path_text, paths_of(fields))) == [
        'metadata.finalizers["a/b"]',
        "metadata.labels.app",
        "spec.containers[name=c]",
        "spec.containers[name=c].command",
        "spec.containers[name=c].image",
        "spec.containers[name=c].name",
        "spec.containers[name=c].ports[containerPort=80,protocol=TCP]",
        "spec.containers[name=c].ports[containerPort=80,protocol=TCP].containerPort",
        "spec.nodeSelector",
        "spec.tolerations",
        "spec.volumes",
    ]


def test_lists_of_an_unknown_kind_are_ours_as_a_whole() -> None:
    body = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"items": [{"name": "a"}], "n": {}}}
    assert applied_fields(body, None) == {"f:spec": {"f:items": {}, "f:n": {}}}
