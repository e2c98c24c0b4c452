"""Small worlds for the tests of the embedded clusters: a cluster, requests to it, workloads."""

from __future__ import annotations

from typing import Any

from reconciler.sim import Answer, Cluster, NodeSpec, Request, Settings

Body = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"


def a_cluster(*nodes: NodeSpec, settings: Settings | None = None, seed: int = 0) -> Cluster:
    cluster = Cluster("m1", settings=settings, seed=seed)
    for node in nodes or (NodeSpec(name="n1", cpu="16", memory="64Gi"),):
        cluster.add_node(node)
    return cluster


def send(cluster: Cluster, method: str, path: str, body: Any = None, **more: Any) -> Answer:
    """One request; the control plane then does what it can do at once."""
    content_type = {"PATCH": "application/merge-patch+json"}.get(method, "application/json")
    request = Request(
        method=method, path=path, body=body, **{"content_type": content_type, "user_agent": "test/1", **more}
    )
    answer = cluster.request(request)
    cluster.run_controllers()
    return answer


def apply(cluster: Cluster, path: str, body: Body, **query: str) -> Body:
    """Server-side apply by force; a refusal fails the test."""
    query = {"fieldManager": "ours", "force": "true", **query}
    answer = send(cluster, "PATCH", path, body, content_type="application/apply-patch+yaml", query=query)
    assert answer.status in (200, 201), answer.body
    found: Body = answer.body
    return found


def pod_template(name: str = "web", *, image: str = "nginx:1", cpu: str = "", **spec: Any) -> Body:
    container: Body = {"name": "main", "image": image}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def workload(kind: str, name: str = "web", *, template: Body | None = None, **spec: Any) -> Body:
    """A Deployment, StatefulSet or DaemonSet."""
    selector = {"matchLabels": {"app": name}}
    body = {"selector": selector, "template": template or pod_template(name), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def run(cluster: Cluster, body: Body) -> str:
    """Apply a workload; its path."""
    group = {"Job": "/apis/batch/v1/namespaces/default"}.get(body["kind"], APPS)
    path = f"{group}/{body['kind'].lower()}s/{body['metadata']['name']}"
    apply(cluster, path, body)
    return path


def get(cluster: Cluster, path: str) -> Body:
    answer = send(cluster, "GET", path)
    assert answer.status == 200, answer.body
    found: Body = answer.body
    return found


def pods(cluster: Cluster, name: str = "web") -> list[Body]:
    """Pods of a workload by name, those on their way out too."""
    return [pod for pod in cluster.state.sorted("Pod", "default") if pod["metadata"]["labels"].get("app") == name]


def placed(cluster: Cluster, name: str = "web") -> list[str]:
    """Nodes of the pods of a workload, sorted; an empty name for one that waits."""
    return sorted(pod["spec"].get("nodeName", "") for pod in pods(cluster, name))


def condition(body: Body, type_: str) -> tuple[str, str]:
    """(status, reason) of a condition."""
    for found in body["status"].get("conditions") or ():
        if found["type"] == type_:
            return found["status"], found.get("reason", "")
    return "", ""
