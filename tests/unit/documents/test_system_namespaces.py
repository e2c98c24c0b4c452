from __future__ import annotations

import pytest

from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_never_distributed, is_system_namespace


@pytest.mark.parametrize(
    "namespace",
    ["kube-system", "kube-public", "kube-", "karmada-system", "karmada-cluster", "karmada-es-m1", "fleet-system"],
)
def test_system_namespaces_are_known(namespace: str) -> None:
    assert is_system_namespace(namespace)


@pytest.mark.parametrize(
    "namespace",
    ["", "default", "kube", "kubeflow", "my-kube-system", "karmada", "karmada-es", "karmada-system2", "fleet-system-2"],
)
def test_names_that_only_look_like_them_are_not(namespace: str) -> None:
    assert not is_system_namespace(namespace)


@pytest.mark.parametrize(
    ("gvk", "identity", "never"),
    [
        (GVK("", "v1", "Secret"), Identity("", "Secret", "kube-system", "s"), True),
        (GVK("", "v1", "Secret"), Identity("", "Secret", "demo", "kube-system"), False),
        (GVK("", "v1", "Namespace"), Identity("", "Namespace", "", "kube-system"), True),
        (GVK("", "v1", "Namespace"), Identity("", "Namespace", "", "demo"), False),
        (GVK("", "v1", "PersistentVolume"), Identity("", "PersistentVolume", "", "kube-pv"), False),
        (GVK("work.karmada.io", "v1", "Work"), Identity("work.karmada.io", "Work", "demo", "w"), True),
        (GVK("apps.karmada.io", "v1", "X"), Identity("apps.karmada.io", "X", "demo", "w"), False),
    ],
)
def test_what_is_never_distributed(gvk: GVK, identity: Identity, never: bool) -> None:
    assert is_never_distributed(gvk, identity) is never
