"""Requests of somebody else to an embedded cluster."""

from __future__ import annotations

from typing import Any

from reconciler.sim import Answer, Cluster, Request

CONFIG_MAPS = "/api/v1/namespaces/demo/configmaps"


def ask(cluster: Cluster, method: str, path: str, body: Any = None, user_agent: str = "kubectl/v1") -> Answer:
    """A request, which has to be granted."""
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = cluster.request(Request(method=method, path=path, body=body, accept="application/json",
                                     content_type=content_type, user_agent=user_agent))  # fmt: skip
    assert answer.status < 300, answer
    return answer
