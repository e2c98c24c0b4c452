"""Observations of a cluster equal what its own scheduler and controllers say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reconciler.api.clusters import Health
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.observe.observe_cluster import observe
from tests.contract.conftest import Connect, connect
from tests.contract.kube_objects import DEPLOYMENT, deployment
from tests.real_clusters import RealCluster, wait_until

NOW = "2030-01-01T00:00:00Z"
STATEFUL_SET = GVK("apps", "v1", "StatefulSet")


def in_namespace(body: dict[str, Any], namespace: str) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def ref(namespace: str, name: str) -> ResourceRef:
    return ResourceRef(DEPLOYMENT, namespace, name)


def wait_for_pods(cluster: RealCluster, namespace: str, ready: int, refused: int) -> None:
    def is_settled() -> bool:
        pods = cluster.get("pods", "-n", namespace)["items"]
        conditions = [{c["type"]: c for c in pod["status"].get("conditions", ())} for pod in pods]
        good = sum(c.get("Ready", {}).get("status") == "True" for c in conditions)
        bad = sum(c.get("PodScheduled", {}).get("reason") == "Unschedulable" for c in conditions)
        return (good, bad) == (ready, refused)

    def seen() -> str:
        return cluster.kubectl("get", "replicasets,pods,events", "-n", namespace)

    wait_until(is_settled, f"{ready} ready and {refused} unschedulable pods in {namespace}", seen=seen)


async def test_room_requests_and_refused_pods_are_seen(member: Connect, cluster: RealCluster, namespace: str) -> None:
    # The taint keeps pods away that other tests have left waiting for a node.
    taint = {"key": "for", "value": namespace, "effect": "NoSchedule"}
    labels = {"for": namespace}
    cluster.add_node(f"{namespace}-n1", cpu="2", memory="4Gi", pods="10", labels=labels, taints=[taint])
    body = in_namespace(deployment("web", replicas=4, cpu="600m"), namespace)
    body["spec"]["template"]["spec"] |= {"nodeSelector": labels, "tolerations": [{"key": "for", "operator": "Exists"}]}
    cluster.apply(body)
    wait_for_pods(cluster, namespace, ready=3, refused=1)
    wait_until(
        lambda: cluster.get("deploy", "web", "-n", namespace)["status"].get("readyReplicas") == 3, "3 ready replicas"
    )
    async with member() as it:
        found = await observe(
            it, [ref(namespace, "web"), ref(namespace, "absent")], now=NOW, interpreters=BUILT_IN_KINDS
        )
    (node,) = [node for node in found.nodes or () if node.name == f"{namespace}-n1"]
    assert (node.ready, node.allocatable["cpu"], node.allocatable["pods"]) == (True, 2000, 10)
    assert node.requested == {"cpu": 1800, "memory": 3 * 64 * 2**20, "pods": 3}
    assert found.pending_requests["cpu"] >= 600
    assert found.apis is not None
    assert DEPLOYMENT in found.apis
    web = found.workloads[Identity("apps", "Deployment", namespace, "web")]
    assert len(found.workloads) == 1
    assert (web.replicas, web.ready, web.unschedulable, web.health) == (4, 3, 1, Health.PROGRESSING)
    assert web.unschedulable_since != NOW
    cluster.remove_node(f"{namespace}-n1")


async def test_old_pods_of_a_rolling_update_are_not_its_unschedulable_ones(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    body = in_namespace(deployment("web", replicas=2), namespace)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"for": namespace}
    body["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster.apply(body)
    wait_for_pods(cluster, namespace, ready=0, refused=2)
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    cluster.apply(body)
    wait_for_pods(cluster, namespace, ready=0, refused=3)
    async with member() as it:
        found = await observe(it, [ref(namespace, "web")], now=NOW, interpreters=BUILT_IN_KINDS)
    assert found.workloads[Identity("apps", "Deployment", namespace, "web")].unschedulable == 1


async def test_pods_that_no_node_ever_takes_are_told_and_take_no_room(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    cluster.add_node(f"{namespace}-n1", cpu="2", memory="4Gi", pods="10")
    async with member() as it:
        before = await observe(it, [], now=NOW, interpreters=BUILT_IN_KINDS)
        body = in_namespace(deployment("lost", replicas=2, cpu="600m"), namespace)
        body["spec"]["template"]["spec"]["nodeSelector"] = {"for": "nobody"}
        cluster.apply(body)
        wait_for_pods(cluster, namespace, ready=0, refused=2)
        found = await observe(it, [], now=NOW, interpreters=BUILT_IN_KINDS)
    (lost,) = [group for group in found.pending if group.namespace == namespace]
    assert (lost.pods, len(lost.names)) == (2, 2)
    assert "node selector for=nobody" in lost.refusal
    assert before.nodes is not None
    assert found.pending_requests.get("cpu", 0) <= before.pending_requests.get("cpu", 0)
    cluster.remove_node(f"{namespace}-n1")


async def test_pods_of_a_statefulset_are_found_by_its_update_revision(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    body = in_namespace(deployment("db", replicas=1), namespace)
    body["kind"] = "StatefulSet"
    body["spec"]["serviceName"] = "db"
    body["spec"]["template"]["spec"]["nodeSelector"] = {"for": namespace}
    cluster.apply(body)
    wait_for_pods(cluster, namespace, ready=0, refused=1)
    wait_until(
        lambda: "updateRevision" in cluster.get("sts", "db", "-n", namespace).get("status", {}), "an update revision"
    )
    async with member() as it:
        found = await observe(it, [ResourceRef(STATEFUL_SET, namespace, "db")], now=NOW, interpreters=BUILT_IN_KINDS)
    assert found.workloads[Identity("apps", "StatefulSet", namespace, "db")].unschedulable == 1


async def test_without_the_right_to_read_nodes_free_capacity_is_unknown(
    cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"reader-{namespace}"
    restricted = tmp_path / "config"
    restricted.write_text(json.dumps(config))
    role = f"reader-{namespace}"
    cluster.kubectl("create", "clusterrole", role, "--verb=get,list", "--resource=deployments.apps,pods")
    cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--user={role}")
    async with connect(restricted, cluster.name) as it:
        found = await observe(it, [], now=NOW, interpreters=BUILT_IN_KINDS)
        assert not await it.allows("patch", "apps", "deployments")
        assert await it.allows("list", "apps", "deployments")
    assert found.nodes is None
    assert found.quotas == ()
    assert found.reachable
