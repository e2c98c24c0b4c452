"""Hooks on a real cluster: its Job controller runs them, and kwok's kubelet ends their pods. Source: ADR 26."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import ACK, FleetOnClusters
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


def job(world: FleetOnClusters, name: str, time: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]}}
    metadata = {"name": name, "namespace": world.namespace, "annotations": {"fleet.reconciler/hook": time}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def applied(world: FleetOnClusters) -> list[str]:
    changes = [result.change for result in world.apply().results]
    return sorted(
        f"{change.action} {change.identity.name}" for change in changes if change.identity.kind != "Namespace"
    )


def ends(world: FleetOnClusters, name: str) -> str:
    """Wait until a Job has ended well; its uid."""

    def is_complete() -> bool:
        live = world.live("m1", "job", name) or {}
        return any(one["type"] == "Complete" for one in live.get("status", {}).get("conditions", ()))

    wait_until(is_complete, f"Job {name} to end", seen=lambda: json.dumps(world.live("m1", "job", name)))
    return str((world.live("m1", "job", name) or {})["metadata"]["uid"])


def test_a_release_runs_its_hooks_once_and_the_next_one_again(tmp_path: Path, three_clusters: ThreeClusters) -> None:
    world = FleetOnClusters(tmp_path, three_clusters)
    node = f"node-{world.fleet}"
    world.clusters["m1"].add_node(node)
    try:
        kinds = [{"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "v1", "kind": "ConfigMap"}]
        spec = {"resourceSelectors": kinds, "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}
        metadata = {"name": "web", "namespace": world.namespace}
        world.write("policy", {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": metadata, "spec": spec})
        hooks = (job(world, "migrate", "before"), job(world, "smoke", "after"))
        world.write("web/all", world.config_map("settings", a="1"), *hooks)
        assert applied(world) == ["create migrate"]
        first = ends(world, "migrate")
        assert applied(world) == ["create settings"]
        assert applied(world) == ["create smoke"]
        ends(world, "smoke")
        assert applied(world) == []
        world.write("web/all", world.config_map("settings", a="2"), *hooks)
        assert applied(world) == ["replace migrate"]
        assert ends(world, "migrate") != first
        assert applied(world) == ["update settings"]
        assert applied(world) == ["replace smoke"]
        ends(world, "smoke")
        world.clusters["m1"].kubectl("delete", "job", "migrate", "-n", world.namespace)
        assert applied(world) == [], "it has run for this release"
    finally:
        world.clusters["m1"].remove_node(node)
