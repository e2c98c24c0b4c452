"""The machine format of a rendering, key by key."""

from __future__ import annotations

import json
from typing import Any

from reconciler.api.binding import Binding
from reconciler.api.content import Content
from reconciler.api.plan import Manifest
from reconciler.api.problem import Source
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
