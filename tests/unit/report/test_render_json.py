"""The machine format of a rendering, key by key."""

from __future__ import annotations

import json
from typing import Any

from reconciler.api.binding import Binding, Reason, TargetCluster
from reconciler.api.content import Content
from reconciler.api.plan import Manifest
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity, PolicyRef
from reconciler.report import Rendering, render_json

WEB = Identity("apps", "Deployment", "demo", "web")
POLICY = PolicyRef("ClusterPropagationPolicy", "", "base")


def document(rendering: Rendering) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(render_json(rendering))
    return parsed


def manifest(cluster: str, identity: Identity = WEB) -> Manifest:
    return Manifest(
        cluster=cluster,
        gvk=GVK(identity.group, "v1", identity.kind),
        identity=identity,
        content=Content(tree={"kind": identity.kind}),
        source=Source("apps/web.yaml", 1),
        policy=POLICY,
        overrides=("OverridePolicy demo/web rule 0",),
    )


def test_has_exactly_the_keys_of_version_1() -> None:
    binding = Binding(
        identity=WEB,
        policy=POLICY,
        targets=(TargetCluster(cluster="m2", replicas=1), TargetCluster(cluster="m1", replicas=2)),
        reasons=(
            Reason(rule="r", text="static weights", source=Source("p.yaml", 2)),
            Reason(rule="r", text="x", cluster="m1"),
        ),
    )
    problem = Problem(source=Source("p.yaml", 14), path="spec.placement", code="c", message="m")
    found = document(
        Rendering(
            revision="abc",
            bindings=(binding,),
            manifests=(manifest("m1"),),
            problems=(problem,),
            policies={POLICY: Source("p.yaml", 1)},
        )
    )
    assert found == {
        "version": 1,
        "revision": "abc",
        "bindings": [
            {
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "demo", "name": "web"},
                "policy": {"kind": "ClusterPropagationPolicy", "namespace": "", "name": "base", "source": "p.yaml:1"},
                "placement": [{"cluster": "m1", "replicas": 2}, {"cluster": "m2", "replicas": 1}],
                "unplaced": 0,
                "reasons": ["static weights (p.yaml:2)", "m1: x"],
            }
        ],
        "objects": [
            {
                "cluster": "m1",
                "source": "apps/web.yaml:1",
                "overrides": ["OverridePolicy demo/web rule 0"],
                "manifest": {"kind": "Deployment"},
            }
        ],
        "problems": [
            {"severity": "error", "code": "c", "source": "p.yaml:14", "path": "spec.placement", "message": "m"}
        ],
    }


def test_objects_come_by_cluster_and_bindings_by_resource() -> None:
    api = Identity("apps", "Deployment", "demo", "api")
    found = document(
        Rendering(
            revision="r",
            bindings=(Binding(identity=WEB, policy=None), Binding(identity=api, policy=None)),
            kinds={api: GVK("apps", "v1beta1", "Deployment")},
            manifests=(manifest("m2"), manifest("m1"), manifest("m1", api)),
        )
    )
    assert [entry["cluster"] for entry in found["objects"]] == ["m1", "m1", "m2"]
    assert [entry["resource"]["name"] for entry in found["bindings"]] == ["api", "web"]
    assert found["bindings"][0]["resource"]["apiVersion"] == "apps/v1beta1"
    assert found["bindings"][0]["policy"] is None


def test_what_has_no_replicas_has_null() -> None:
    binding = Binding(identity=WEB, policy=POLICY, targets=(TargetCluster(cluster="m1"),))
    assert document(Rendering(revision="r", bindings=(binding,)))["bindings"][0]["placement"] == [
        {"cluster": "m1", "replicas": None}
    ]
