"""Fields that cannot be changed in place, in whole rounds. Source: design#replacement."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.api.plan import Action, Change
from tests.fakes.worlds import TestBed, deployment, fleet_of

CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "app", "namespace": "demo"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}  # fmt: skip
VOLUME = {
    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "app"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}},
}  # fmt: skip
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object"}}}]},
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "PersistentVolumeClaim": {"accessModes": ["ReadWriteMany"]},
    "PersistentVolume": {"hostPath": {"path": "/b"}},
    "CustomResourceDefinition": {"scope": "Cluster"},
    "Deployment": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
}


def rule(body: dict[str, Any]) -> dict[str, Any]:
    selector = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    return {"apiVersion": "policy.one.alibabacloud.com/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": {"name": "p"}, "spec": {"resourceSelectors": [selector], "placement": {}}}  # fmt: skip


ALLOWED = {"fleet.reconciler/replace": "allowed"}


def replaced(body: dict[str, Any], *, is_allowed: bool, says: dict[str, str] = ALLOWED) -> list[Change]:
    """Return what is planned in m1 when the immutable field of an object that is there changes."""
    bed = TestBed("m1")
    bed.run(fleet_of(body, rule(body), clusters=("m1",)))
    changed = copy.deepcopy(body)
    changed["spec"] |= CHANGES[body["kind"]]
    if is_allowed:
        changed["metadata"]["annotations"] = says
    return [c for c in bed.plan(fleet_of(changed, rule(body), clusters=("m1",))).plan.changes if c.action != "release"]


def test_a_replacement_is_held_until_the_template_allows_it() -> None:
    (held,) = replaced(deployment(), is_allowed=False)
    assert held.action is Action.REPLACE
    assert "annotate the template with fleet.reconciler/replace: allowed" in (held.held or "")
    (free,) = replaced(deployment(), is_allowed=True)
    assert (free.action, free.held) == (Action.REPLACE, None)


@pytest.mark.parametrize(
    ("said", "is_free"),
    [
        ({"argocd.argoproj.io/sync-options": "Force=true,Replace=true"}, True),
        ({"kustomize.toolkit.fluxcd.io/force": "Enabled"}, True),
        ({"argocd.argoproj.io/sync-options": "Replace=true"}, False),
    ],
)
def test_what_another_tool_may_replace_is_replaced_here(said: dict[str, str], is_free: bool) -> None:
    (change,) = replaced(deployment(), is_allowed=True, says=said)
    assert (change.action, change.held is None) == (Action.REPLACE, is_free)


@pytest.mark.parametrize("body", [CLAIM, VOLUME, DEFINITION], ids=lambda body: str(body["kind"]))
def test_what_would_take_data_with_it_is_never_replaced(body: dict[str, Any]) -> None:
    (change,) = replaced(body, is_allowed=True)
    assert change.action is Action.REPLACE
    assert (change.held or "").endswith(f"a {body['kind']} is never replaced")
