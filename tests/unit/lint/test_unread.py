"""A document that a broken file may hold is not missing: a warning to take its policy out would be false."""

from __future__ import annotations

import pytest

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.fleet import parse
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.lint import lint
from reconciler.policy import claim

POLICIES = """\
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: PropagationPolicy
metadata: {name: app, namespace: demo}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: ConfigMap, name: app}
  - {apiVersion: v1, kind: ConfigMap, name: gone}
  placement: {clusterAffinity: {clusterNames: [m2]}}
---
apiVersion: policy.one.alibabacloud.com/v1alpha1
kind: OverridePolicy
metadata: {name: app, namespace: demo}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: app}]
  overrideRules: [{targetCluster: {clusterNames: [m2]}, overriders: {plaintext: [{operator: remove, path: /data/a}]}}]
"""
FLEET = "apiVersion: fleet.reconciler/v1alpha1\nkind: Fleet\nmetadata: {name: shop}\n"
CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: m1}\n"
M2 = CLUSTER.replace("m1", "m2")
APP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: demo}\n"
OTHER = APP.replace("app", "other")


@pytest.mark.parametrize(
    ("broken", "clusters", "expected"),
    [
        (f"{OTHER}data: {{}}\n", CLUSTER + "---\n" + M2, ["override-selects-nothing", "selector-matches-nothing: gone",
                                                        "selector-matches-nothing: app"]),
        (f"{APP}data: [1]\n", CLUSTER + "---\n" + M2, ["selector-matches-nothing: gone"]),
        (f"{APP}data: {{a: [\n", CLUSTER + "---\n" + M2, []),
        (f"{APP}data: {{}}\n", f"{CLUSTER}---\n{M2}spec: {{region: 4}}\n", []),
        (f"{APP}data: {{}}\n", CLUSTER, ["affinity-matches-nothing", "cluster-unknown", "cluster-unknown",
                                       "override-targets-nothing", "selector-matches-nothing: gone"]),
    ],
    ids=["nothing is broken", "the object is", "its file is", "the cluster is", "a cluster is missing"],
)  # fmt: skip
def test_what_may_stand_in_a_broken_file_is_not_called_missing(broken: str, clusters: str, expected: list[str]) -> None:
    texts = {"a.yaml": broken, "c.yaml": clusters, "p.yaml": POLICIES, "f.yaml": FLEET}
    files = [StoreFile(path=path, blob=path, data=text.encode()) for path, text in texts.items()]
    fleet = parse(Snapshot(revision="r", files=tuple(files)))
    found = []
    for problem in lint(fleet, claim(fleet), BUILT_IN_KINDS):
        names = [name for name in ("app", "gone") if f"ConfigMap {name}" in problem.message]
        is_selector = problem.code == "selector-matches-nothing"
        found.append(f"{problem.code}: {names[0]}" if is_selector else problem.code)
    assert sorted(code for code in found if code != "template-unclaimed") == sorted(expected)
