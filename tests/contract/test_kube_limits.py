"""Quotas of namespaces are observed with what their pods use of them."""

from __future__ import annotations

from reconciler.kinds import BUILT_IN_KINDS
from reconciler.observe.observe_cluster import observe
from tests.contract.conftest import Connect
from tests.contract.kube_objects import deployment
from tests.contract.test_kube_observe import NOW, in_namespace, wait_for_pods
from tests.real_clusters import RealCluster, wait_until


def limit(cluster: RealCluster, namespace: str, **hard: str) -> None:
    """Limit a namespace whose pods run already.

    Under a quota whose use is not counted yet the server refuses every pod, and a ReplicaSet then tries again after
    pauses that double: pods that come after their quota may take minutes on a busy machine.
    """
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    cluster.apply(in_namespace(quota, namespace))

    def is_counted() -> bool:
        return set(cluster.get("quota", "q", "-n", namespace).get("status", {}).get("used", ())) == set(hard)

    wait_until(is_counted, f"the use of the quota of {namespace} to be counted", timeout_s=180)


async def test_a_quota_is_seen_with_what_its_namespace_uses(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    body = in_namespace(deployment("web", replicas=4, cpu="600m"), namespace)
    body["spec"]["template"]["spec"]["nodeSelector"] = {"for": namespace}
    cluster.apply(body)
    wait_for_pods(cluster, namespace, ready=0, refused=4)
    limit(cluster, namespace, **{"requests.cpu": "10", "pods": "20"})
    async with member() as it:
        found = await observe(it, [], now=NOW, interpreters=BUILT_IN_KINDS)
    (limits,) = [quota for quota in found.quotas if quota.namespace == namespace]
    assert (limits.hard["requests.cpu"], limits.used["requests.cpu"]) == (10_000, 2400)
    assert (limits.hard["pods"], limits.used["pods"]) == (20, 4)
